"""Confidence intervals, paired differences and warm-up removal: functions of numbers, on scipy."""

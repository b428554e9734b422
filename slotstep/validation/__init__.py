"""Predictions compared with measured runs and with runs of a real engine."""

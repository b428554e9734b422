"""Predictors of output length, which policies use instead of the true length."""

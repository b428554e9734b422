"""`slotstep watch`."""

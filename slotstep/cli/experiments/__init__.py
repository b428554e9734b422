"""`slotstep sweep`, `results`, `study`, `capacity` and `check`."""

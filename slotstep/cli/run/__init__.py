"""`slotstep run`, `compare`, `parity`, `replay` and `validate`."""

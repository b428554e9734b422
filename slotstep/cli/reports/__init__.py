"""`slotstep report` and `slotstep policies`."""

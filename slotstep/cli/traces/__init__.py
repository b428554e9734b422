"""`slotstep trace`: description, conversion, fits and generation of workloads."""

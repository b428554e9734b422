"""`slotstep calibrate`, `slotstep profiles` and `slotstep pages`."""

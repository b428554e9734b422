"""How wrong a step cost may be: its error model, the covariance of its coefficients, and draws of both."""

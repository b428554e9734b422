"""`slotstep explore`: a local page that simulates a scenario again whenever one of its values is changed."""

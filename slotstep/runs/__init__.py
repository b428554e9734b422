"""From a scenario to a run of it, and what the run gave."""

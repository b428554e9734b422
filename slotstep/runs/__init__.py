"""Loading, resolving and running scenarios, and the results of runs."""

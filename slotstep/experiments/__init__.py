"""Many runs: replications, sweeps, studies, the search for capacity, and checks against a baseline."""

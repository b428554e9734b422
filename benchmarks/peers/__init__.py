"""The same work on other simulators of serving engines, in the same minutes: `python -m benchmarks.peers`."""

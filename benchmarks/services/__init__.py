"""Published measurements of services against simulations: `python -m benchmarks.services NAME`, a module a name."""

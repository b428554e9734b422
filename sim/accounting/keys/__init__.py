"""The keys of a run's summary: each module declares metrics, which `sim.accounting.metrics` lists."""

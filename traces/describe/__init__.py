"""What is in a trace, in numbers, and a synthetic workload like it."""

"""What can be said of repeated runs, and how surely: pure functions of numbers, on scipy. Knows nothing of runs."""

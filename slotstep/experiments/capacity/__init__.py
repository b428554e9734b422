"""Capacity: the largest rate, or the fewest replicas, that meets objectives with stated confidence."""

"""Transforms of requests: rate, selection, lengths, arrivals, and their sessions."""

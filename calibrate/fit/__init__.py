"""Fits of step costs: to timed steps, to logs of steps, to the latencies of requests."""

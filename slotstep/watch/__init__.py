"""Monitoring of a running engine: polls its metrics page and derives exact numbers from its counters."""

"""Predictions compared with measured runs, a module for each suite; every one returns rows of `rows.Row`."""

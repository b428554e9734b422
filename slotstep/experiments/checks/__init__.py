"""Checks against a baseline: scenarios and their recorded metrics in a YAML file, run and compared, or recorded."""

"""The schema of a scenario: its sections, kinds of value, units and error messages. Runs nothing."""

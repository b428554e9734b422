"""The schema of a scenario: its sections, value types, units and error messages. Runs nothing."""

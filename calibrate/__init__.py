"""From measurements to what a step costs: profiles, operator tables, fits, and a real engine to measure."""

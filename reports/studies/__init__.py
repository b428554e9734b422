"""Results of the studies as figures (`draw`) and text (`lines`), from the tables of their sweeps."""

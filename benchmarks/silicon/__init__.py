"""Measured closed loops of InferenceX against simulations from the kept database, its own estimate, and shapes."""

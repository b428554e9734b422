"""Figures, one module each, and the style they share."""

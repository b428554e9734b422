"""Figures by matplotlib, a module each, their style, and writing them as PNG."""

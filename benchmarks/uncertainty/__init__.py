"""Sizes of the error model of step costs, and the coverage of its intervals, on measured runs declared open."""

"""Interfaces that a policy implements, and the admission rules of the kernel."""

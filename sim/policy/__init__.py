"""The seams that a policy fills, and the admission rules of the kernel."""

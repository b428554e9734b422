"""All checks and measurements on a machine with a GPU, as one command."""

"""Everything measured and checked on a machine with a GPU, as one command."""

"""Queue policies, one small file each. Knows nothing of files, clocks or engines."""

"""Folders that `--out` wrote, read back for a report."""

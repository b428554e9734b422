"""What `--out` wrote, read back for a report."""

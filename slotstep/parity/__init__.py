"""The decisions of our scheduler compared with the log of an engine."""

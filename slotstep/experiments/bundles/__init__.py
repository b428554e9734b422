"""Bundles: runs in one file with what is needed to run them again elsewhere and compare the results."""

"""The command line: one module for each command, with the text that it prints."""

"""The command line: one module a command, and the text it prints."""

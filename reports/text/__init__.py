"""What the command line prints: tables, bars, sentences."""

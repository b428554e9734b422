"""What a study found, drawn and in sentences, from the tables of its sweeps. Knows nothing of how they were made."""

"""From a file's bytes to typed frames: sources, rows, formats by name, assembly."""

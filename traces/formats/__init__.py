"""Readers, one small module per format.

Each has `matches(head) -> bool`, which detects the format from the beginning of a file, and `chunks(path) ->
Iterator[Piece]`, which reads the file in its order. `traces.reading.registry` lists them.
"""

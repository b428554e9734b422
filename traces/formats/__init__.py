"""One small module per public format.

Each has `matches(head) -> bool`, which tells the format by a file's beginning, and `chunks(path) ->
Iterator[Piece]`, which reads it in the file's order. `traces.reading.registry` names them.
"""

"""Rows of a trace file as typed, checked columns: CSV, JSON lines, JSON documents, and times as text."""

"""Runs in the formats of other tools: Perfetto traces, OpenMetrics text."""

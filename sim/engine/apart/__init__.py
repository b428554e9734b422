"""The planner of engines whose passes are of one kind: prefill or decode."""

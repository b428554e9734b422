"""Paged KV memory: pools of pages, with and without a prefix cache."""

"""Speculative decoding: a step verifies drafts of several tokens, and brings those that are accepted and one more."""

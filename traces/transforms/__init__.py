"""Requests to requests: other rates, parts, lengths and arrivals."""

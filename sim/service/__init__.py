"""Clients, routers and replicas on virtual time, to the end of the last request."""

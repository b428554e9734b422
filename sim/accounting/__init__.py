"""Pure functions of the logs: records of requests, the ledger, metrics, frames."""

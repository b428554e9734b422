"""How fast the simulator is, and how much memory it takes: `python -m benchmarks`.

Times are CPU seconds of the process, for a shared machine's wall clock says little. They include the whole
accounting (the log's digest, every metric of a summary), not the drawing of the requests.
"""

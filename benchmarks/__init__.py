"""Speed and memory use of the simulator: `python -m benchmarks`.

Times are CPU seconds of the process, because the wall clock of a shared machine varies with its load. They include
all of the accounting (the log's digest, every metric of a summary), not the generation of the requests.
"""

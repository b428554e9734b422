"""Launching steps: inputs, streams, CUDA graphs, swapping, and engines that only advance a clock."""

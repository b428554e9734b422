"""Execution of steps: inputs, streams, CUDA graphs, swapping; and synthetic engines that advance a clock."""

"""Devices: data sheets, measured peaks, roofline bounds, memory plans, and the environment of a measurement."""

"""The compiled core: one engine and its arrivals in C, with the log of the Python kernel to the byte."""

"""The kernel: one scheduler of a serving engine, its clock, its costs and its accounts.

Knows no policy by name, no file format and no torch.
"""

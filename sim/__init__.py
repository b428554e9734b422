"""The kernel: the scheduler of a serving engine, its clock, its costs and its accounts.

Independent of policies by name, of file formats and of torch.
"""

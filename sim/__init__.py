"""The kernel: the scheduler of a serving engine, its clock, its costs and its accounts.

Independent of policies by name, of file formats and of torch. Its modules are imported as Python or compiled
(`sim.kernel`).
"""

from sim.kernel import install

install()

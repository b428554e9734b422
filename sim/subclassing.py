"""The mark by which mypyc is told what Python code may do with a compiled class; it has no effect on the sources.

Only the compiler needs the package `mypy_extensions`: a GPU machine has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_):
        """Return a class as it is."""
        return lambda marked: marked


__all__ = ["mypyc_attr"]

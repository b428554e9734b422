"""Tables in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> str:
    """A table and a line end; columns for which `numeric` is true are right-aligned. Cells are Markdown."""
    rule = ["---:" if right else "---" for right in numeric]
    return "".join(f"| {' | '.join(line)} |\n" for line in [heads, rule, *rows])


def escaped(text: str) -> str:
    """Text with every character escaped that has a meaning in Markdown, also within a table."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", text)

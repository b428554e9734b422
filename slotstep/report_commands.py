"""`slotstep report`: a folder that `--out` wrote as one page, as Markdown, or as a trace for Perfetto."""

from __future__ import annotations

from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """What a report can be."""

    html = "html"


NAMES = {Format.html: "report.html"}


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What --out of run or compare wrote.")],
    format_: Annotated[Format, typer.Option("--format", help="What to make.")] = Format.html,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; by default into DIR.")
    ] = None,
) -> None:
    """Make one file of a result that says what it means: a page that opens anywhere, offline."""
    from reports import files
    from reports.page.html import page
    from slotstep.report_folder import read

    story = read(folder)
    target = out or folder / NAMES[format_]
    files.write_text(target, page(story, version("slotstep")))
    print(target)

"""`slotstep report`: a folder that `--out` wrote as one page, as Markdown, or as a trace for Perfetto."""

from __future__ import annotations

import json
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traces.errors import BadInput

if TYPE_CHECKING:
    from reports.page.report import Report


class Format(StrEnum):
    """The formats of a report."""

    html = "html"
    md = "md"
    perfetto = "perfetto"


NAMES = {Format.html: "report.html", Format.md: "report.md", Format.perfetto: "trace.json"}


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What --out of run or compare wrote.")],
    format_: Annotated[
        Format,
        typer.Option("--format", help="A page, Markdown for a pull request, or a trace for ui.perfetto.dev."),
    ] = Format.html,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; by default into DIR.")
    ] = None,
) -> None:
    """Make one file of a result: an offline page, Markdown, or a trace."""
    from reports import files
    from slotstep.report_input.folder import read

    story = read(folder)
    target = out or folder / NAMES[format_]
    files.write_text(target, rendered(story, format_, folder))
    print(target)


def rendered(story: Report, format_: Format, folder: Path) -> str:
    """A report in one of the formats. Raises BadInput, with the folder, if there is no run to trace."""
    if format_ is Format.html:
        from reports.page.html import page

        return page(story, version("slotstep"))
    if format_ is Format.md:
        from reports.page.markdown import markdown

        return markdown(story)
    from reports.exports.perfetto import trace

    if not story.runs:
        raise BadInput(f"{folder}: holds no single run to trace; expected what --out of run or compare wrote")
    return json.dumps(trace(story.runs), ensure_ascii=False, separators=(",", ":")) + "\n"

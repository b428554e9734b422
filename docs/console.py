"""Keeps the documentation true: runs its console blocks and puts in what they print.

    python -m docs.console            rewrite README.md and docs/*.md
    python -m docs.console --check    change nothing; exit with 1 if they would change

A block begins with three backquotes and `console`. Its lines with a leading `$ ` are commands; what stands
between them is what the commands print, standard error included, 90 columns wide. What stands between the
comments `<!-- $ COMMAND -->` and `<!-- end -->` is Markdown that the command prints. Commands on the Azure
traces find them in the cache, where `slotstep trace fetch` puts them; without them, or with a fault in any
command, nothing is written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"(^<!-- \$ ([^\n]*) -->\n)(?:.*?)(^<!-- end -->$)", re.MULTILINE | re.DOTALL)
COLUMNS = 90
UNFIT = ("Traceback (most recent call last)", "no such file; `slotstep trace fetch")
"""What no page is to show: a fault, or a trace that is not there."""


def pages() -> list[Path]:
    """The README and the other pages."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def refreshed(text: str, environment: Mapping[str, str]) -> str:
    """A page with every command run again."""
    text = BLOCK.sub(lambda found: replayed(found[0], environment), text)
    return PRINTED.sub(lambda found: f"{found[1]}{output(found[2], environment)}{found[3]}", text)


def replayed(block: str, environment: Mapping[str, str]) -> str:
    """A block's commands, each followed by what it prints now."""
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{output(command, environment)}" for command in commands)


def output(command: str, environment: Mapping[str, str]) -> str:
    """What a command prints, without space at the ends of lines. Exits with 1 if that is no documentation."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    printed = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env={**environment, "PATH": path, "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout
    if any(sign in printed for sign in UNFIT):
        sys.exit(f"{command}: {printed.splitlines()[-1]}")
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def main() -> None:
    """Refresh every page, or say which are not fresh."""
    new = {page: refreshed(page.read_text(), os.environ) for page in pages()}
    stale = [page for page, text in new.items() if text != page.read_text()]
    if "--check" not in sys.argv[1:]:
        for page in stale:
            page.write_text(new[page])
    print(*(f"{page.relative_to(ROOT)} has changed" for page in stale), sep="\n")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(1)


if __name__ == "__main__":
    main()

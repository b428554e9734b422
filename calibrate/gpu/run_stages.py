"""Runs stages one after the other, each in a process of its own, within one deadline.

An error of a GPU stays with its process until that ends, so a process for each stage is the only way to go on after
one. A stage that raises, is killed or runs out of time is tried again by the next of its ways, if it has one, and
the stages after it run all the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrate.measure.run_log import write_whole

ARCHIVE = "files.tar.gz"
TAIL = 2000
"""Characters of a failed stage's output that the results keep."""


class Results:
    """One JSON file: an object for each stage, written whole at every addition, by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """All of it; {} before the first addition."""
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def put(self, stage: str, **values: Any) -> None:
        """Add or replace values of a stage; they are in the file when this returns."""
        found = self.read()
        found.setdefault(stage, {}).update(values)
        write_whole(self.path, json.dumps(found, indent=1, default=float) + "\n")


@dataclass(frozen=True)
class Stage:
    """A stage: its name, the most seconds that one attempt takes, and its ways, from the results so far."""

    name: str
    limit: float
    ways: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _: ("",)


def run_stages(
    stages: Sequence[Stage],
    command: Callable[[str, str], Sequence[str]],
    out: Path,
    results: Results,
    seconds: float,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Run every stage within `seconds` in all; `command(stage, way)` is what is run, its output goes to STAGE.log.

    For each stage the results have under `stages` its seconds, the way that it ended by (None: by none of them), and
    for each way that failed why. `after` is called after each stage.
    """
    deadline = time.monotonic() + seconds
    for stage in stages:
        began = time.monotonic()
        failed: dict[str, str] = {}
        ended: str | None = None
        for way in stage.ways(results.read()):
            left = min(stage.limit, deadline - time.monotonic())
            why: str | None = "the time for all stages was up"
            if left > 0:
                why = attempt(command(stage.name, way), left, out / f"{stage.name}.log")
            if why is None:
                ended = way
                break
            failed[way] = why
            if deadline <= time.monotonic():
                break
        spent = round(time.monotonic() - began, 1)
        results.put("stages", **{stage.name: {"seconds": spent, "way": ended, "failed": failed}})
        said = [f"  {way or 'it'} failed: {last_line(why)}" for way, why in failed.items()]
        print(f"{spent:6.1f} s  {stage.name}{';'.join(said)}", flush=True)
        after()


def attempt(command: Sequence[str], seconds: float, log: Path) -> str | None:
    """Run a command, its output appended to a file; why it failed, or None. At the limit it is killed."""
    with log.open("ab") as file:
        begins = file.tell()
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"not done after {seconds:.0f} s"
    if code == 0:
        return None
    end = log.read_bytes()[begins:].decode(errors="replace")[-TAIL:].strip()
    return f"{'killed by signal ' + str(-code) if code < 0 else 'exit code ' + str(code)}: {end}"


def last_line(why: str) -> str:
    """The last line of a failure: an exception's own."""
    return why.splitlines()[-1]


def archive(out: Path, kept: Sequence[str]) -> None:
    """Put all files of a folder but those kept beside it into one archive there."""
    files = [path for path in sorted(out.rglob("*")) if path.is_file() and path.name not in (*kept, ARCHIVE)]
    with tarfile.open(out / ARCHIVE, "w:gz") as made:
        for path in files:
            made.add(path, path.relative_to(out))

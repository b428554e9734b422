"""The log of a measurement: one line of JSON for every event, written as it happens.

A run that was killed is read back and continues after its last whole line. `about.json` beside it describes what is
measured; a log is only continued by the same measurement.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LINES = "samples.jsonl"
ABOUT = "about.json"

CONTROL = "sentinel"
"""The kind of the lines that hold samples of the control point."""

Line = dict[str, Any]


class RunLog:
    """The lines of a measurement in `folder`, those of earlier starts included; in memory if it is None.

    Raises ValueError, one line, for a folder that holds another measurement.
    """

    def __init__(self, folder: Path | None, about: Mapping[str, Any]) -> None:
        self.about = dict(about)
        self.lines: list[Line] = []
        self.file: Any = None
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / ABOUT).exists():
            found = read_about(folder)
            for key in sorted({*found, *self.about}):
                if found.get(key) != through_json(self.about.get(key)):
                    raise ValueError(
                        f"{folder / ABOUT}: {key} is {found.get(key)!r}, of this measurement "
                        f"{self.about.get(key)!r}; expected a new folder, or the same measurement to continue"
                    )
            self.lines = read_lines(folder)
        else:
            write_whole(folder / ABOUT, json.dumps(self.about, indent=2) + "\n")
        write_whole(folder / LINES, "".join(json.dumps(line) + "\n" for line in self.lines))
        self.file = (folder / LINES).open("a", encoding="utf-8")

    def write(self, **line: Any) -> None:
        """Append a line; it is in the file when this returns."""
        self.lines.append(line)
        if self.file is not None:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    def of(self, kind: str) -> list[Line]:
        """The lines of a kind, in order."""
        return [line for line in self.lines if line["kind"] == kind]

    def close(self) -> None:
        """Close the file; no line may follow."""
        if self.file is not None:
            self.file.close()


def read_lines(folder: Path) -> list[Line]:
    """The whole lines of a log; an incomplete last one, of a run that was killed, is left out.

    Raises ValueError, with file and line, for any other invalid line.
    """
    path = folder / LINES
    if not path.exists():
        return []
    lines: list[Line] = []
    text = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(text, start=1):
        if not line:
            continue
        try:
            found = json.loads(line)
            if not isinstance(found, dict) or "kind" not in found:
                raise ValueError("not an object with a kind")
        except ValueError as error:
            if number == len(text):
                break
            raise ValueError(f"{path}, line {number}: {error}; expected a line that a measurement wrote") from None
        lines.append(found)
    return lines


def read_about(folder: Path) -> dict[str, Any]:
    """The description of a measurement; raises ValueError for a folder that holds none."""
    path = folder / ABOUT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; expected the folder of a measurement") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: found {type(found).__name__}; expected an object")
    return found


def through_json(value: Any) -> Any:
    """A value as it is read back from JSON."""
    return json.loads(json.dumps(value))


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either complete or not there."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)

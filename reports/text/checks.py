"""Outcomes of the checks of a baseline: as text, as JUnit XML, and as annotations of a GitHub workflow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

Value = int | float | str | None


@dataclass(frozen=True)
class Compared:
    """A metric of a check: its recorded value, its value now, its tolerance (`exact`, `2%`, `0.5`), the outcome."""

    metric: str
    recorded: Value
    now: Value
    allowed: str
    same: bool

    @property
    def change(self) -> str:
        """The change from the recorded value: `-0.0441 (-4.5%)`; empty if either is not a number."""
        if not isinstance(self.recorded, int | float) or not isinstance(self.now, int | float):
            return ""
        moved = self.now - self.recorded
        share = f" ({100 * moved / abs(self.recorded):+.3g}%)" if self.recorded else ""
        return f"{moved:+.4g}{share}"

    @property
    def sentence(self) -> str:
        """`occupancy was 0.977, is 0.933: -0.0441 (-4.5%), allowed: exact`."""
        moved = f": {self.change}" if self.change else ""
        return f"{self.metric} was {shown(self.recorded)}, is {shown(self.now)}{moved}, allowed: {self.allowed}"


@dataclass(frozen=True)
class Broken:
    """Why a check could not be run."""

    reason: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check: its metrics, or the reason why it could not be run."""

    name: str
    metrics: Sequence[Compared]
    broken: Broken | None = None

    @property
    def differing(self) -> list[Compared]:
        """The metrics outside their tolerance."""
        return [one for one in self.metrics if not one.same]


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """The exit code of the command: 0 if all is as recorded, 1 if a metric differs, 2 if a check is broken."""
    if any(outcome.broken for outcome in outcomes):
        return 2
    return 1 if any(outcome.differing for outcome in outcomes) else 0


def shown(value: Value) -> str:
    """A value as text: every digit of a number, the first 16 characters of a longer string."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return value if len(value) <= 20 else f"{value[:16]}..."
    return repr(value)


def text(outcomes: Sequence[Outcome]) -> str:
    """A line per check, followed by its differing metrics, and a last line with the totals."""
    lines = []
    for outcome in outcomes:
        if outcome.broken:
            lines.append(f"{outcome.name}: broken: {outcome.broken.reason}")
        elif not outcome.differing:
            lines.append(f"{outcome.name}: {counted(len(outcome.metrics), 'metric')} as recorded")
        else:
            lines.append(
                f"{outcome.name}: {len(outcome.differing)} of {counted(len(outcome.metrics), 'metric')} differ"
            )
            lines += _columns(outcome.differing)
    bad = sum(bool(outcome.differing) for outcome in outcomes)
    broken = sum(bool(outcome.broken) for outcome in outcomes)
    totals = [f"{bad} differ"] * bool(bad) + [f"{broken} broken"] * bool(broken)
    return "\n".join([*lines, f"{counted(len(outcomes), 'check')}: {', '.join(totals) or 'all as recorded'}"])


def counted(number: int, noun: str) -> str:
    """`1 metric`, `2 metrics`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _columns(differing: Sequence[Compared]) -> list[str]:
    rows = [("metric", "recorded", "now", "change", "allowed")]
    rows += [(one.metric, shown(one.recorded), shown(one.now), one.change, one.allowed) for one in differing]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def junit(name: str, outcomes: Sequence[Outcome]) -> str:
    """JUnit XML: a test suite per check, a test case per metric; a broken check is one case with an error."""
    root = ElementTree.Element("testsuites", name=clean(name))
    for outcome in outcomes:
        cases = len(outcome.metrics) or 1
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=clean(outcome.name),
            tests=str(cases),
            failures=str(len(outcome.differing)),
            errors=str(int(outcome.broken is not None)),
        )
        if outcome.broken:
            case = ElementTree.SubElement(suite, "testcase", classname=clean(outcome.name), name="run")
            ElementTree.SubElement(case, "error", message=clean(outcome.broken.reason))
        for one in outcome.metrics:
            case = ElementTree.SubElement(suite, "testcase", classname=clean(outcome.name), name=clean(one.metric))
            if not one.same:
                ElementTree.SubElement(case, "failure", message=clean(one.sentence))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def clean(name: str) -> str:
    """Text in which each character that XML does not allow is a `?`."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", name)


def github(file: str, outcomes: Sequence[Outcome], line: Callable[[str, str], int]) -> str:
    """GitHub workflow commands that mark each difference in line `line(check, metric)` of the baseline."""
    marks = []
    for outcome in outcomes:
        if outcome.broken:
            marks.append(_mark(file, 1, f"{outcome.name} is broken", outcome.broken.reason))
        marks += [
            _mark(file, line(outcome.name, one.metric), f"{one.metric} of {outcome.name}", one.sentence)
            for one in outcome.differing
        ]
    return "\n".join(marks)


def _mark(file: str, line: int, title: str, words: str) -> str:
    def quoted(value: str) -> str:
        for sign, code in {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}.items():
            value = value.replace(sign, code)
        return value

    message = words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::error file={quoted(file)},line={line},title={quoted(title)}::{message}"

"""Outcomes of checks for a pull request: annotations of a GitHub workflow, and its summary in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reports.checks.outcome import Outcome, cause, headline, rows, totals
from reports.text.markdown_table import escaped, markdown_table


def error_marks(file: str, outcomes: Sequence[Outcome], line: Callable[[str, str], int]) -> str:
    """GitHub workflow commands that mark each difference in line `line(check, metric)` of the baseline.

    A message has the metric first, then what changed in the scenario.
    """
    marks = []
    for outcome in outcomes:
        if outcome.broken:
            marks.append(_mark(file, 1, f"{outcome.name} is broken", outcome.broken.reason))
        marks += [
            _mark(
                file,
                line(outcome.name, one.metric),
                f"{one.metric} of {outcome.name}",
                "\n".join([one.sentence, *cause(outcome)]),
            )
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


def summary(file: str, outcomes: Sequence[Outcome]) -> str:
    """Markdown: the totals, a line per check, and of those that differ or improved what changed and the metrics."""
    parts = [f"### {escaped(file)}: {totals(outcomes)}"]
    for outcome in outcomes:
        parts.append(f"**{escaped(outcome.name)}**: {escaped(headline(outcome))}")
        if changed := cause(outcome):
            parts.append("\n".join(f"- {escaped(line)}" for line in changed))
        if outcome.differing or outcome.improved:
            heads, *lines = rows([*outcome.differing, *outcome.improved])
            numeric = [False, True, True, True, False]
            parts.append(markdown_table(heads, [list(map(escaped, row)) for row in lines], numeric).rstrip())
    return "\n\n".join(parts) + "\n"

"""Outcomes of checks as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from reports.checks.outcome import Outcome, cause


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
                failure = ElementTree.SubElement(case, "failure", message=clean(one.sentence))
                failure.text = clean("\n".join(cause(outcome)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def clean(name: str) -> str:
    """Text in which each character that XML does not allow is a `?`."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", name)

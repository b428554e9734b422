"""One name for one thing: words that docs/terms.md rules out do not come back in code, scenario keys and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT

from docs import reference
from docs.console import pages
from slotstep.scenario.schema import Scenario

PACKAGES = ("sim", "policies", "traces", "calibrate", "reports", "slotstep")
TERMS = (ROOT / "docs" / "terms.md").read_text().partition("## Words that are not used")[2]
NAMES = re.findall(r"^\| `(\w+)` \|", TERMS, re.MULTILINE)
PLURAL_ONLY = {"gates", "lives"}
TABLE_CELLS = (
    "traces.formats",
    "traces.reading",
    "reports.page",
    "reports.text",
    "slotstep.cli",
    "slotstep.experiments.sweeps",
)
"""Where a cell is one of a table."""
PHRASES = (
    r"nobody|somebody|anybody|everybody|everyone|whoever",
    r"hears? of|heard of|unheard|asks? for nothing|told of",
    r"luck|invoice|yardstick|hang on a hair|put up with|fellows|kin",
    r"warmth|trail|lanes|journeys?|guess(?:es)?|specimens?|crowds?|sentinels?",
    r"makes? up its mind|comes? to nothing|come of it|at heart|so to speak|in other words",
)


def ruled_out(name: str) -> set[str]:
    """The words of an identifier that are not to be used, such as those of `CrowdSize` and `crowd_size`."""
    words = {word.lower() for word in re.split(r"[_.]|(?<=[a-z0-9])(?=[A-Z])", name)}
    forms = {word: {word} if word in PLURAL_ONLY else {word, f"{word}s", f"{word}es"} for word in NAMES}
    return {word for word, found in forms.items() if words & found}


def identifiers(path: Path) -> Iterator[str]:
    """The module's own name and all that it names: classes, functions, arguments, variables, attributes."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def prose(page: Path) -> str:
    """What a page says in words of its own: without code, printed output and the list of words that are not used."""
    text = page.read_text().partition("## Words that are not used")[0]
    for part in (r"^```.*?^```$", r"<!-- (?:begin|\$).*?<!-- end[^>]*-->"):
        text = re.sub(part, "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)


def test_the_list_is_read() -> None:
    assert {"crowd", "warmth", "trail", "specimen"} <= set(NAMES)
    assert ruled_out("CrowdSize") == ruled_out("crowds_of") == {"crowd"}
    assert not ruled_out("gate_up")
    assert not ruled_out("place")
    assert ruled_out("gates") == {"gates"}


def test_no_identifier_has_a_word_that_is_ruled_out() -> None:
    found = {}
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        allowed = {"cell"} if name.startswith(TABLE_CELLS) else set()
        if bad := sorted({given for given in identifiers(path) if ruled_out(given) - allowed}):
            found[name] = bad
    assert not found


def test_no_key_of_a_scenario_has_a_word_that_is_ruled_out() -> None:
    told = reference.rows_of("scenario.md")
    keys = [key.name for key in reference.keys_below(Scenario, told)] + list(told)
    assert len(keys) > 150
    assert not [key for key in keys if ruled_out(key)]


@pytest.mark.parametrize(
    "page", [page for page in pages() if not page.name.startswith("reference-")], ids=lambda page: page.name
)
def test_pages_are_literal(page: Path) -> None:
    text = prose(page)
    assert not [match[0] for phrase in PHRASES for match in re.finditer(rf"\b(?:{phrase})\b", text, re.IGNORECASE)]

"""docs/comparison.md: what it names exists, and each claim about another simulator has an address and a date."""

from __future__ import annotations

import re
from datetime import date

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "comparison.md").read_text()
ADDRESSES = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", PAGE, re.MULTILINE))
OTHERS = ("Vidur", "LLMServingSim", "BLIS", "DynoSim", "aiconfigurator", "inference-lab", "sched-sim")
SOURCE = re.compile(r"\]\[([\w-]+)\]")
HERE = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


def rows(first: str) -> list[list[str]]:
    """The cells of the table whose first heading is `first`: its heading, then its rows."""
    table = PAGE.partition(f"| {first} |")
    lines = (table[1] + table[2]).partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


HEADING, *FEATURES = rows("feature | slotstep")
_, *MISSING = rows("feature | stated by")


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row[0])
def test_each_row_has_sources_and_a_date(row: list[str]) -> None:
    assert ["feature", "slotstep", *OTHERS, "read"] == HEADING
    _, ours, *others, read = row
    assert date.fromisoformat(read)
    assert HERE.search(ours)
    assert len(others) == len(OTHERS)
    for stated in others:
        assert stated in ("not stated", "not measured") or SOURCE.search(stated) or HERE.search(stated), stated
        assert stated.lower() != "no"


@pytest.mark.parametrize("row", MISSING, ids=lambda row: row[0])
def test_each_simulator_that_has_what_slotstep_has_not_has_a_source(row: list[str]) -> None:
    _, stated = row
    for claim in stated.removesuffix(")").split("), "):
        name, _, sources = claim.partition(" (")
        assert name in OTHERS
        assert SOURCE.search(sources)


def test_each_path_on_the_page_exists() -> None:
    paths = HERE.findall(PAGE)
    assert len(paths) > len(FEATURES)
    assert not [path for path in paths if not (ROOT / "docs" / path).exists()]


def test_each_source_has_one_address_that_is_used() -> None:
    assert set(SOURCE.findall(PAGE)) == set(ADDRESSES)
    assert all(address.startswith("https://") for address in ADDRESSES.values())
    assert len(ADDRESSES) == len(set(ADDRESSES.values())) == len(re.findall(r"^\[[\w-]+\]: ", PAGE, re.MULTILINE))

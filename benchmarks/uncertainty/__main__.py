"""`python -m benchmarks.uncertainty`: learn the sizes of the error model, and write them and their coverage.

Sizes go to calibrate/uncertainty/sizes.yaml, tables to docs/uncertainty.md. `--rows` is a silicon_sample.csv in place
of the one in the installed package aiconfigurator-core; the other data are in SLOTSTEP_DATA, or else in
../shared/data. `--held` judges the sizes that ship by rows that they were not learned from: after everything else.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from benchmarks.fidelity.__main__ import put
from benchmarks.uncertainty.corpus import Cell, cells, fitted_cells, of_database, table, table_cells
from benchmarks.uncertainty.sizes import Coverage, by_group, covered, learned, left_out
from calibrate.uncertainty import error_model
from calibrate.uncertainty.error_model import MADE

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "uncertainty.md"
SIZES = ROOT / "calibrate" / "uncertainty" / "sizes.yaml"
SOURCES = {
    "shapes": "shapes alone, beside {n} metrics of measured closed loops of dense models on H100, H200 and B200",
    "database": "a database of operators, beside {n} metrics of measured closed loops of dense models",
    "tables": "operator tables, beside {n} measured closed loops of Llama-3.1-8B on one H100",
    "fit": "fits, beside {n} metrics of held-out runs of four models on H100",
}


def corpus(data: Path, rows: Path | None) -> dict[str, list[Cell]]:
    """The cells of each way to make a cost."""
    return {
        "shapes": list(cells(table(rows))),
        "database": list(cells(table(rows), of_database)),
        "tables": list(table_cells(data)),
        "fit": list(fitted_cells((ROOT / "docs" / "fidelity.md").read_text())),
    }


def section(found: Mapping[str, Sequence[Cell]]) -> str:
    """The tables of the page."""
    lines = [f"`python -m benchmarks.uncertainty`, {datetime.date.today()}.", ""]
    lines += [
        "| cost | cells | decode steps x | steps with prompts x | common | decode | prompts |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, these in found.items():
        sizes = learned(these)
        medians = f"{sizes.decode_median:.2f} | {sizes.prompts_median:.2f}"
        spreads = f"{sizes.common:.3f} | {sizes.decode:.3f} | {sizes.prompts:.3f}"
        lines.append(f"| {MADE[kind]} | {len(these)} | {medians} | {spreads} |")
    for kind, these in found.items():
        groups = left_out(these)
        total = sum(each.covered for each in groups) / len(these)
        own = sum(covered(these, learned(these))) / len(these)
        lines += ["", f"### Coverage of costs {MADE[kind]}", ""]
        lines += [f"Of all cells, with each group left out: {total:.0%}; with none left out: {own:.0%}.", ""]
        lines += rows_of(groups, "left out")
    return "\n".join(lines) + "\n"


def rows_of(groups: Sequence[Coverage], first: str) -> list[str]:
    """A row for each metric of each group."""
    lines = [f"| {first} | metric | cells | covered | median error |", "|---|---|---:|---:|---:|"]
    return lines + [
        f"| {each.group} | {each.metric.upper()} | {each.cells} "
        f"| {each.covered / each.cells:.0%} | {each.error:+.2f} |"
        for each in groups
    ]


def held_section(these: Sequence[Cell]) -> str:
    """The coverage of the held rows by the sizes that ship, which were learned from open rows."""
    groups = by_group(these, lambda _: error_model.sizes()["shapes"])
    total = sum(each.covered for each in groups) / len(these)
    lines = [f"`python -m benchmarks.uncertainty --held`, {datetime.date.today()}.", ""]
    lines += [f"Held rows, from shapes: {total:.0%} of {len(these)} cells covered.", "", *rows_of(groups, "group")]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn, and write sizes and page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uncertainty", description="Sizes of the error model.")
    parser.add_argument("--rows", type=Path, help="a silicon_sample.csv; the installed package's if not given")
    parser.add_argument("--held", action="store_true", help="learn nothing; the coverage of the held rows, once")
    options = parser.parse_args(arguments)
    if options.held:
        put(PAGE, "held", held_section(list(cells(table(options.rows, held=True)))))
        return
    data = Path(os.environ.get("SLOTSTEP_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        sys.exit(f"no public data at {data}; set SLOTSTEP_DATA to its folder")
    found = corpus(data, options.rows)
    sizes = {kind: learned(these, SOURCES[kind].format(n=len(these))).content() for kind, these in found.items()}
    SIZES.write_text(yaml.safe_dump(sizes, sort_keys=False, width=110))
    put(PAGE, "sizes", section(found))


if __name__ == "__main__":
    main()

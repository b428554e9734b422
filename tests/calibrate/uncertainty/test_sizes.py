"""Sizes of the error model from cells with known errors, and the rows that they may be learned from."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.uncertainty.corpus import Cell, cells, fitted_cells, moved, table
from benchmarks.uncertainty.sizes import covered, learned, left_out
from sim.cost.forms import Unit


def drawn(groups: int, between: float, within: float, seed: int = 0) -> list[Cell]:
    """Fifty cells a group, half decodes and half prompts, whose decodes were measured 1.2 times as long."""
    random = np.random.default_rng(seed)
    found = []
    for group in range(groups):
        common = random.normal(0, between)
        for _ in range(25):
            decode, prompts = random.normal(0, within, 2)
            found.append(Cell(str(group), "tpot", np.log(1.2) + common + decode, 1.0, 0.0))
            found.append(Cell(str(group), "ttft", common + prompts, 0.0, 1.0))
    return found


def test_sizes_are_those_of_the_errors() -> None:
    these = drawn(40, between=0.0, within=0.1)
    found = learned(these)
    assert found.decode_median == pytest.approx(1.2, rel=0.02)
    assert found.prompts_median == pytest.approx(1.0, rel=0.02)
    assert np.hypot(found.common, found.decode) == pytest.approx(0.1, rel=0.1)
    assert sum(covered(these, found)) / len(these) == pytest.approx(0.9, abs=0.01)


def test_groups_that_differ_are_covered_by_the_others() -> None:
    these = drawn(30, between=0.2, within=0.05)
    groups = left_out(these)
    assert len(groups) == 60
    assert sum(each.covered for each in groups) / len(these) == pytest.approx(0.9, abs=0.06)
    assert {each.covered for each in groups} > {25}  # some groups are covered whole, others are not


def test_the_derivatives_are_those_of_the_steps() -> None:
    here, decode, prompts = moved(Unit(1000), lambda cost: {"one": cost.decode**2 * cost.prompts, "two": 5.0})
    assert here["one"] == pytest.approx(0)
    assert (decode["one"], prompts["one"]) == (pytest.approx(2), pytest.approx(1))
    assert decode["two"] == prompts["two"] == 0


def rows(folder: Path) -> Path:
    """Twenty rows of one model, and one of a precision that is not predicted."""
    names = [f"row {number}" for number in range(20)]
    frame = pd.DataFrame(
        {
            "id": [*names, "other"],
            "silicon_data_source": "source_file=2026.csv",
            "backend": "vllm",
            "backend_version": None,
        }
    )
    frame = frame.assign(
        model_path="meta-llama/Llama-3.1-70B", system="h100_sxm", mode="agg", pp_size=1.0, tp_size=4.0
    )
    frame = frame.assign(isl=128, osl=8, batch_size=2.0, silicon_ttft_ms=30.0, silicon_tpot_ms=10.0)
    frame["precision"] = ["fp8"] * 20 + ["fp4"]
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def test_open_and_held_rows_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    opened, held = (set(table(rows(tmp_path), held)["id"]) for held in (False, True))
    assert opened
    assert held
    assert opened | held == {f"row {number}" for number in range(20)}
    assert all(zlib.crc32(name.encode()) % 2 == 0 for name in opened)
    assert all(zlib.crc32(name.encode()) % 2 == 1 for name in held)


def test_a_row_is_two_cells_of_its_group(tmp_path: Path) -> None:
    tpot, ttft = cells(table(rows(tmp_path)).head(1))
    assert (tpot.group, tpot.metric, ttft.metric) == ("llama-3.1-70b, h100_sxm, vllm", "tpot", "ttft")
    # Every step is of one kind or the other, and only the first tokens wait for prompts.
    assert tpot.decode + tpot.prompts == pytest.approx(1, abs=0.01)
    assert ttft.prompts > 0.5


def test_held_out_runs_of_the_page_are_cells() -> None:
    page = """## tenants
| run | | TTFT p50 | TPOT p50 |
|---|---|---:|---:|
| a | fitted | +1.0% | +1.0% |
| w5 | held out | -50.0% | +100.0% |

llama-2-7b, fitted in 1 s

| run | | TTFT p50 | TPOT p50 |
|---|---|---:|---:|
| x-llama-2-7b-y | held out | +0.0% | +0.0% |
"""
    found = [(each.group, each.metric, round(each.error, 4)) for each in fitted_cells(page)]
    assert found == [
        ("qwen3-14b", "tpot", -0.6931),
        ("qwen3-14b", "ttft", 0.6931),
        ("llama-2-7b", "tpot", 0.0),
        ("llama-2-7b", "ttft", 0.0),
    ]

"""The studies: each runs small and draws; static batching is held to theory, and what defeats continuous is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from reports.studies import pages, tail
from slotstep.cli.app import main
from slotstep.experiments import studies
from slotstep.experiments.sweeps import grid
from slotstep.experiments.sweeps.sweep import sweep
from slotstep.scenario import document

SMALL = {"tail": 1600, "tail-defeats": 600}


def table(name: str, folder: Path, seeds: int = 1, **grid_changes: Any) -> Any:
    """The table of a study's grid with fewer requests and seeds, and perhaps fewer values."""
    plan = document.read(studies.path(name))
    plan["scenario"]["workload"]["synthetic"]["requests"] = SMALL.get(name, 60)
    plan["seeds"] = seeds
    plan["grid"] = {**plan.get("grid", {}), **grid_changes}
    frame = sweep(grid.read(plan, name), folder / name, jobs=1).frame()
    assert set(frame.status) == {"ended"}
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in studies.STUDIES if name != "tail"])
def test_a_study_draws_and_says_what_it_found(name: str, tmp_path: Path) -> None:
    study = studies.STUDIES[name]
    frames = [table(each, tmp_path) for each in study.grids]
    assert isinstance(study.draw(frames), Figure)
    lines = study.lines(frames)
    assert len(lines) >= 5
    assert all("nan" not in line for line in lines)


LAWS = [
    {"lognormal": {"mean": 21.5, "cv": 0.25}},
    {"lognormal": {"mean": 21.5, "cv": 1}},
    {"lognormal": {"mean": 21.5, "cv": 2}},
    {"pareto": {"alpha": 2.5, "minimum": 8}},
    {"empirical": {"values": [5, 6, 7, 8, 9, 11, 120], "weights": [1, 2, 1, 1, 1, 1, 1]}},
]


@pytest.mark.slow
def test_static_batching_falls_with_the_spread_as_theory_says_and_continuous_does_not(tmp_path: Path) -> None:
    frame = table("tail", tmp_path, 2, **{"workload.synthetic.output": LAWS})
    found = tail.occupancies(frame)
    static = [found["static", "lognormal", cv][0].value for cv in (0.25, 1.0, 2.0)]
    assert static == sorted(static, reverse=True)
    assert static[-1] < 0.5 * static[0]
    for (batching, _, _), (each, expected) in found.items():
        if batching == "static":
            assert each.value == pytest.approx(expected, rel=0.15)
        else:
            assert each.value > 0.95
    defeats = table("tail-defeats", tmp_path)
    assert isinstance(tail.draw(frame, defeats), Figure)
    said = {line.partition(":")[0]: line for line in tail.lines(frame, defeats)}
    assert "most is lost to no_demand" in said["stragglers"]
    assert "most is lost to no_memory" in said["long contexts"] or "most is lost to blocked" in said["long contexts"]
    occupancy = defeats[defeats.engine_batching == "continuous"].groupby("name").occupancy.mean()
    assert occupancy["stragglers"] < 0.5 * occupancy["backlog"]
    assert occupancy["long contexts"] < 0.5 * occupancy["backlog"]


def test_theory_of_a_batch_by_hand() -> None:
    # Of eight draws the longest is 120 with probability 1 - (7/8)^8, else mostly 11.
    values, weights = [5, 6, 7, 8, 9, 11, 120], [1, 2, 1, 1, 1, 1, 1]
    reach = np.cumsum(weights) / 8
    longest = sum(value * (reach[n] ** 8 - (reach[n - 1] ** 8 if n else 0)) for n, value in enumerate(values))
    assert longest == pytest.approx(120 * (1 - (7 / 8) ** 8) + 11 * ((7 / 8) ** 8 - (6 / 8) ** 8), rel=0.02)
    assert tail.theory("empirical", {"values": values, "weights": weights}) == pytest.approx(21.5 / longest)
    # Lengths that do not vary waste nothing. A Pareto law of index 4: mean 4/3, longest of eight by gamma functions.
    assert tail.theory("lognormal", {"mean": 21, "cv": 1e-6}) == pytest.approx(1.0, abs=1e-6)
    from scipy.special import gamma

    expected = (4 / 3) / (gamma(9) * gamma(1 - 1 / 4) / gamma(9 - 1 / 4))
    assert tail.theory("pareto", {"alpha": 4, "minimum": 1000}) == pytest.approx(expected, rel=1e-3)


def test_waste_follows_half_a_page_a_sequence(tmp_path: Path) -> None:
    together = [{"engine.page_size": size, "engine.pages": 16384 // size} for size in (1, 16, 128)]
    plan = document.read(studies.path("pages"))
    plan["scenario"]["workload"]["synthetic"]["requests"] = 300
    plan |= {"together": together, "seeds": 2}
    frame = sweep(grid.read(plan), tmp_path, jobs=1).frame()
    simulated, expected = pages.waste(frame), pages.theory(frame)
    assert simulated[1].value == 0
    for size in (16, 128):
        assert simulated[size].value == pytest.approx(expected[size], rel=0.15)


def test_the_command_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["study", "tails"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: study tails: unknown; did you mean tail?\n"

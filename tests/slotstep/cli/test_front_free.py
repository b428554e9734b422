"""`--free`: some terms of a cost fitted to measured requests, whatever its form, beside the others as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import slotstep
from calibrate.fit.from_log import fit
from calibrate.profiles.profile import named, read, shipped
from calibrate.profiles.schema import coefficients, curve
from sim.cost.forms import Affine, Curve, Roofline
from slotstep.cli.app import main
from slotstep.runs import costs
from slotstep.validation import measured_runs

ENGINE = {"slots": 16, "token_budget": 512}
FORMS: dict[str, dict[str, Any]] = {
    "shape": {"shape": {"model": "llama-3.1-8b", "device": "h100-sxm"}, "host": "3ms"},
    "table of shapes": {"shape": {"model": "mixtral-8x7b", "device": "h200-sxm"}, "host": "3ms"},
    "profile": {"profile": "h100-llama-3.1-8b", "host": "3ms"},
    "affine": {"affine": {"base": "4ms", "per_sequence": "100us", "per_prefill_token": "40us", "host": "3ms"}},
    "roofline": {"roofline": {"weight_pass": "8ms", "per_context_token": "200ns", "host": "3ms", "raggedness": 0.2}},
}


def slotstep_exits(*arguments: object) -> int:
    """Run the command line; its exit code."""
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def measure(folder: Path, cost: dict[str, Any]) -> Path:
    """A measured run, written of a simulation at this cost; beside it the scenario, with a host of a third of it."""
    law = {"requests": 40, "arrivals": {"gamma": {"rate": 4, "cv": 0.2}}, "output": {"fixed": 6}}
    workload = {"synthetic": {**law, "prompt": {"uniform": {"minimum": 50, "maximum": 400}}}}
    made = slotstep.run(slotstep.parse({"workload": workload, "engine": ENGINE, "cost": cost})).requests
    frame = pd.DataFrame(
        {
            "request_id": made["id"],
            "input_tokens": made["prompt"],
            "output_tokens": made["output"],
            "arrival_time_us": made["queued_ns"] // 1000,
            "send_time_us": made["queued_ns"] // 1000,
            "first_chunk_time_us": made["first_token_ns"] // 1000,
            "last_chunk_time_us": made["ended_ns"] // 1000,
            "status": "ok",
        }
    )
    frame.to_csv(folder / "log.trace.csv", index=False)
    (kind,) = (key for key in cost if key != "host")
    start = {**cost, "host": "1ms"} if "host" in cost else {kind: {**cost[kind], "host": "1ms"}}
    scenario = {"workload": {"trace": {"auto": "log.csv"}}, "engine": ENGINE, "cost": start}
    (folder / "engine.yaml").write_text(yaml.safe_dump(scenario))
    return folder / "log.trace.csv"


@pytest.mark.parametrize("form", FORMS)
def test_the_host_is_found_beside_terms_of_any_form_and_these_stay(form: str, tmp_path: Path) -> None:
    (run,) = measured_runs.runs([measure(tmp_path, FORMS[form])], tmp_path / "engine.yaml")
    start = costs.cost(run.scenario)
    assert isinstance(start, Curve)
    found = fit([run.for_fit()], start=start, free=["host"], starts=1, draws=2)
    assert found.cost.host == pytest.approx(3e6, rel=0.03)
    assert replace(found.cost, host=start.host) == start


@pytest.mark.slow
def test_a_table_with_its_host_fitted_is_a_profile_that_says_where_the_rest_is_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = measure(tmp_path, FORMS["profile"])
    arguments = ["calibrate", "from-log", log, "--scenario", tmp_path / "engine.yaml", "--free", "host"]
    assert slotstep_exits(*arguments, "--out", tmp_path / "mine.yaml", "--json") == 0
    assert json.loads(capsys.readouterr().out)["free"] == ["host"]
    made, before = read(tmp_path / "mine.yaml"), named("h100-llama-3.1-8b")
    assert made.cost().host == pytest.approx(3e6, rel=0.03)
    assert replace(made.cost(), host=before.cost().host) == before.cost()
    for key in ("device", "model", "dtype", "tensor_parallel", "range"):
        assert made.content[key] == before.content[key]
    assert f"all terms but host are those of profile h100-llama-3.1-8b, {before.sha256}" in made.content["source"]


def test_terms_that_only_a_sum_has_are_fitted_too(tmp_path: Path) -> None:
    (run,) = measured_runs.runs([measure(tmp_path, FORMS["affine"])], tmp_path / "engine.yaml")
    start = Affine(per_sequence=1e5, host=3e6, base=4e6)
    found = fit([run.for_fit()], start=start, free=["per_prefill_token"], starts=1, draws=2)
    assert isinstance(found.cost, Affine)
    assert found.cost.per_prefill_token == pytest.approx(4e4, rel=0.05)
    with pytest.raises(ValueError, match=r"weight_pass is no term; expected some of host, per_context_token,"):
        fit([run.for_fit()], start=start, free=["weight_pass"])


@pytest.mark.parametrize("name", shipped())
def test_a_curve_as_a_profile_holds_it_is_read_back_as_it_was(name: str) -> None:
    cost = named(name).cost()
    ((kind, content),) = coefficients(cost).items()
    assert curve(kind, content) == cost
    assert coefficients(Roofline(host=1.0, graph_sizes=(1, 2))) == {"roofline": {"host": 1.0, "graph_sizes": [1, 2]}}

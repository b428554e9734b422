"""`slotstep plan`: GPUs for the busiest stretch of a log, both errors, cost, and the same rates as `capacity`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import answer, code_of, complaint
from repository import ROOT

from slotstep.planning import decision, prices, slices
from slotstep.planning.candidates import candidates, gpus
from traces.errors import BadInput

MODEL = ("--model", "llama-3.1-8b")
SLO = ("--slo", "p99 ttft < 1s", "--slo", "p95 tpot < 50ms")


def log(folder: Path, gap: float = 0.5, count: int = 60) -> Path:
    """A request every `gap` seconds, of 200 and 20 tokens; those of the last third have 400 and 40."""
    path = folder / "log.csv"
    long = [2 if n >= 2 * count // 3 else 1 for n in range(count)]
    rows = [
        f"{1760000000 + n * gap:.3f},{200 * k},{20 * k},{'acme' if n % 2 else 'zeta'}" for n, k in enumerate(long)
    ]
    path.write_text("\n".join(["ts,tok_in,tok_out,team", *rows]) + "\n")
    return path


def frame(times: list[float], prompt: list[int], output: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"arrival_ns": (np.array(times) * 1e9).astype(np.int64), "prompt": prompt, "output": output})


def test_the_busiest_stretches_are_kept_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two hours: a request a second in minute 10, of long outputs in minute 50, of long prompts in minute 90; else one
    # every 20 s.
    monkeypatch.setattr(slices, "ENOUGH", 60)
    rows = [(float(t), 10, 10) for t in range(0, 7200, 20)]
    rows += [(600 + t + 0.5, 10, 10) for t in range(60)]
    rows += [(3000 + t, 10, 900) for t in range(0, 60, 10)]
    rows += [(5400 + t, 900, 10) for t in range(0, 60, 10)]
    rows.sort()
    of = frame(*map(list, zip(*rows, strict=True)))
    found = slices.choose(of, slices.demand(of))
    assert [(each.names, each.begin, each.end) for each in found] == [
        (("requests",), 600, 660),
        (("output tokens",), 3000, 3060),
        (("prompt tokens",), 5400, 5460),
    ]
    assert found[0].requests == 63
    assert found[0].rate == pytest.approx(63 / 60)


def test_a_log_of_few_requests_is_taken_whole() -> None:
    of = frame([0.0, 1.0, 5.0, 100.0], [10] * 4, [5] * 4)
    (whole,) = slices.choose(of, slices.demand(of))
    assert (whole.requests, whole.begin, whole.names) == (4, 0, ("prompt tokens", "output tokens", "requests"))
    assert whole.end == pytest.approx(100)
    assert whole.held == pytest.approx(12.5)


def test_names_that_people_use_are_said() -> None:
    assert gpus(["h100", "A100", "l40s"]) == (
        ["h100-sxm", "a100-sxm-80gb", "l40s"],
        ["h100 is taken as h100-sxm", "A100 is taken as a100-sxm-80gb"],
    )
    with pytest.raises(BadInput, match="--gpus h101: unknown; did you mean h100"):
        gpus(["h101"])
    with pytest.raises(BadInput, match="h100-sxm is named twice"):
        gpus(["h100", "h100-sxm"])


def test_degrees_begin_with_the_smallest_that_fits() -> None:
    # 141 GB of weights at 16 bits: 48 GB cards need four, of which nine tenths are used; 80 GB cards two.
    found = candidates("llama-3.1-70b", ["l40s", "h100-sxm"], ["vllm"], content=False)
    fits = [(each.gpu, each.tensor_parallel) for each in found if each.refused is None]
    assert fits == [("l40s", 4), ("l40s", 8), ("h100-sxm", 2), ("h100-sxm", 4)]
    refused = {each.tensor_parallel: each.refused for each in found if each.gpu == "l40s" and each.refused}
    assert "does not fit: it needs" in refused[1]
    assert all(each.scenario["engine"]["prefix_cache"] is False for each in found)


def row(at: float | None, slow: float | None, gpu: str = "h100-sxm", degree: int = 1) -> dict[str, Any]:
    unknown = None if slow is not None else "none"
    return {
        "gpu": gpu, "tensor_parallel": degree, "at": at, "refused": None, "curve": [],
        "slow_end": {"at": slow, "unknown": unknown},
        "token_shares": {"computed": 0.5, "output": 0.25, "held": 0.25},
    }  # fmt: skip


def one(rate: float) -> slices.Slice:
    return slices.Slice(("requests",), 0, 60, int(60 * rate), rate, 100, 20, 110)


def test_replicas_are_rounded_up_and_slower_steps_need_more() -> None:
    need = decision.needs(row(4.0, 1.5, degree=2), one(10.0), 1.2)
    assert (need["replicas"], need["gpus"], need["sure_replicas"], need["sure_gpus"]) == (3, 6, 8, 16)
    assert need["headroom"] == pytest.approx(1.0)
    assert decision.needs(row(None, None), one(10.0), 1)["gpus"] is None


def test_a_month_is_divided_among_tokens() -> None:
    paid = prices.Prices("EUR", {"h100-sxm": 2.0})
    need = decision.needs(row(10.0, 5.0), one(10.0), 1)
    found = decision.costs(need, row(10.0, 5.0), paid, {"prompt": 1000.0, "output": 100.0})
    assert found["month"] == 2.0 * 730
    assert found["sure_month"] == 2 * 2.0 * 730
    million = 730 * 3600 / 1e6
    cost = found["per_million"]
    assert cost["cached"] == pytest.approx(0.25 * 1460 / (1000 * million))
    assert cost["input"] == pytest.approx(0.75 * 1460 / (1000 * million))
    # Every token bought at its price makes the month.
    assert cost["input"] * 1000 * million + cost["output"] * 100 * million == pytest.approx(1460)


def test_a_latency_between_two_points_is_theirs_in_proportion() -> None:
    assert decision.between([(1.0, 0.1), (3.0, 0.4)], 2.0) == pytest.approx(0.2)
    assert decision.between([(1.0, 0.1), (3.0, 0.4)], 0.5) == 0.1
    assert decision.between([(1.0, 0.1), (3.0, 0.4)], 9.0) == 0.4


def priced(gpu: str, month: float, gpus_: int, *latencies: float) -> dict[str, Any]:
    need = {"month": month, "gpus": gpus_, "sure_month": month, "sure_gpus": gpus_, "latencies": list(latencies)}
    return {"gpu": gpu, "needs": [need]}


def test_the_front_is_what_no_other_beats() -> None:
    rows = [priced("a", 100, 1, 0.5), priced("a", 200, 2, 0.3), priced("b", 150, 4, 0.6), priced("b", 90, 2, 0.9)]
    assert decision.front(rows, 0, priced=True) == [0, 1, 3]
    assert decision.cheapest(rows, 0, priced=True) == [3]
    # Without prices GPUs of another kind are not compared.
    assert decision.front(rows, 0, priced=False) == [0, 1, 2, 3]
    assert decision.cheapest(rows, 0, priced=False) == [0, 3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("currency: USD\ngpu_hour: {h100: 2, h200x: 3}\n", "gpu_hour.h200x: unknown; did you mean h200"),
        ("currency: USD\n", "gpu_hour: field required"),
        ("currency: USD\ngpu_hour: {h100: -1}\n", "gpu_hour.h100: input should be greater than or equal to 0"),
        ("currency: USD\ngpu_hour: {h100: 1}\ntax: 2\n", "tax: extra inputs are not permitted"),
        ("currency: USD\ngpu_hour: {l4: 1}\n", "gpu_hour has no price of h100-sxm; found l4"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(BadInput) as caught:
        prices.read(tmp_path / "prices.yaml", ["h100-sxm"])
    assert str(caught.value).startswith(f"{tmp_path / 'prices.yaml'}: {reason}")


def test_no_prices_are_shipped() -> None:
    template = (ROOT / "examples" / "prices.yaml").read_text()
    assert all(not line.strip() or line.startswith("#") for line in template.splitlines())
    kept = [line[2:] for line in template.splitlines() if line.startswith("# ") and ":" in line]
    assert "gpu_hour:" in " ".join(kept)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--gpus", "h101", *SLO), "--gpus h101: unknown; did you mean"),
        (("--gpus", "h100", "--slo", "attainment > 95%"), "expected a latency, as in 'p99 ttft < 1s'"),
        (("--gpus", "h100", *SLO, "--growth", "2,1"), "--growth 2,1: expected rising numbers above 0"),
        (("--gpus", "h100", *SLO, "--engines", "vlm"), "--engines vlm: unknown; did you mean vllm?"),
        (("--gpus", "l4", *SLO, "--tensor-parallel", "1", "--model", "llama-3.1-70b"), "fits on none of the GPUs"),
    ],
)
def test_what_cannot_be_planned_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reason: str
) -> None:
    said = complaint(capsys, "plan", log(tmp_path), *(() if "--model" in arguments else MODEL), *arguments)
    assert reason in said.splitlines()[-1]


@pytest.mark.slow
def test_a_plan_from_a_log_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prices.yaml").write_text("currency: USD\ngpu_hour: {h100: 3, l40s: 1}\n")
    command = ("plan", log(tmp_path), *MODEL, "--gpus", "h100,l40s", *SLO, "--growth", "1,50", "--jobs", "1")
    command += ("--tensor-parallel", "1", "--prices", tmp_path / "prices.yaml", "--out", tmp_path / "out")
    assert code_of(*command) == 0
    printed = capsys.readouterr()
    assert (
        "to set it yourself: --map arrival=ts:s --map prompt=tok_in --map output=tok_out --map tenant=team"
        in printed.err
    )
    assert "h100 is taken as h100-sxm" in printed.err
    content = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert [each["names"] for each in content["slices"]] == [["prompt tokens", "output tokens", "requests"]]
    assert content["slices"][0]["rate"] == pytest.approx(2, rel=0.03)
    first, second = content["rows"]
    assert (first["gpu"], second["gpu"]) == ("h100-sxm", "l40s")
    for found in content["rows"]:
        assert found["slow_end"]["at"] < found["at"] <= found["bound_per_s"]
        assert [need["rate"] for need in found["needs"]] == pytest.approx(
            [content["slices"][0]["rate"] * g for g in (1, 50)]
        )
        assert found["needs"][0]["gpus"] == 1
    # One GPU of either kind bears two requests/s, and the cheaper one is chosen.
    assert content["cheapest"][0] == [1]
    text = " ".join(printed.out.split())
    for said in (
        "Sampling error",
        "Model error",
        "the cheapest is 1 l40s",
        "To be sure",
        "cannot be told",
        "USD a month",
    ):
        assert said in text
    scenario = tmp_path / "out" / "h100-sxm-x1-vllm.yaml"
    assert scenario.exists()
    assert (tmp_path / "out" / "plan.html").read_text().startswith("<!doctype html>")


def test_an_objective_that_requests_alone_miss_is_met_at_no_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("plan", log(tmp_path), *MODEL, "--gpus", "l40s", "--tensor-parallel", "1", "--jobs", "1", "--json")
    assert code_of(*command, "--slo", "p50 tpot < 1ms") == 0
    printed = capsys.readouterr()
    assert "no rate is met: p50 tpot < 1ms is missed by requests alone" in printed.err
    content = json.loads(printed.out)
    assert content["rows"][0]["at"] is None
    assert content["cheapest"] == [[]]
    assert "Today's traffic: no candidate bears it within the objectives." in content["sentences"]


@pytest.mark.slow
def test_rates_are_those_of_capacity_by_hand(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = data / "traces" / "azure_2023" / "AzureLLMInferenceTrace_conv.csv.gz"
    made = tmp_path / "hour.csv"
    subprocess.run([sys.executable, ROOT / "examples" / "gateway_log.py", trace, made], check=True)
    plan = answer(
        capsys, "plan", made, *MODEL, "--gpus", "h100", "--tensor-parallel", "1", *SLO, "--out", tmp_path / "out"
    )
    (found,) = plan["rows"]
    scenario = tmp_path / "out" / "h100-sxm-x1-vllm.yaml"
    by_hand = answer(capsys, "capacity", scenario, *SLO, "--resample", "20s", "--seeds", "8", "--tolerance", "0.05")
    (other,) = by_hand["answers"]
    # Each says between which rates its runs do not decide; the two have to meet.
    assert found["at"] <= other["missed"]
    assert other["at"] <= found["missed"]
    assert found["binding"] == other["binding"]


@pytest.mark.slow
def test_what_was_found_before_ctrl_c_is_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slotstep", "plan", str(log(tmp_path)), *MODEL, "--gpus", "h100,a100,l40s,l4"]
    command += [*SLO, "--tensor-parallel", "1", "--jobs", "1", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stderr is not None
    for line in running.stderr:
        if "1 of 4: " in line:
            break
    os.killpg(running.pid, signal.SIGINT)
    printed, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "interrupted: the candidates above were looked at, the others were not" in said
    assert "Not every candidate was looked at: the command was interrupted." in " ".join(printed.split())
    content = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert content["complete"] is False
    assert [row["gpu"] for row in content["rows"]] == ["h100-sxm"]

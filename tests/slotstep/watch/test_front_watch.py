"""`slotstep watch` against a local page that serves a simulation over time, and against one that misbehaves."""

from __future__ import annotations

import csv
import io
import json
import re
import urllib.request
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from engine_stand_in import Answer, failing, half, page, serving, slow
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT
from rich.console import Console

import slotstep
from reports.exports import engine_metrics
from reports.exports.openmetrics import exposition
from slotstep.cli import app
from slotstep.cli.watch.watch import observations
from slotstep.runs.result import Result
from slotstep.watch import exporter, reading, show
from slotstep.watch.meter import Meter
from slotstep.watch.scrape import NoAnswerError, address

EXAMPLES = ROOT / "examples"
OUTPUTS = (5, 8, 6, 120, 7, 9, 6, 11) * 20

Watch = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def watch(capsys: pytest.CaptureFixture[str]) -> Watch:
    """Runs the command with `--json` and gives what it printed, an object per reading."""

    def run(url: str, slots: int, *options: str, code: int = 0) -> list[dict[str, Any]]:
        with pytest.raises(SystemExit) as left:
            app.main(["watch", url, "--slots", str(slots), "--json", "--interval", "1us", *options])
        assert (left.value.code or 0) == code
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture(scope="module")
def backlog() -> Result:
    """A hundred and sixty answers of known lengths in eight slots, a millisecond a step."""
    return slotstep.run(slotstep.load(EXAMPLES / "eight-continuous.yaml"))


def tokens_after(steps: int) -> int:
    """Tokens delivered in the first steps of the backlog: each slot that is free takes the next, lowest first."""
    free, delivered = [0] * 8, 0
    for output in OUTPUTS:
        slot = free.index(min(free))
        delivered += min(output, max(0, steps - free[slot]))
        free[slot] += output
    return delivered


def test_every_step_of_a_simulation_reads_as_it_was_to_the_last_digit(backlog: Result, watch: Watch) -> None:
    steps = backlog.summary["steps"]
    script = [page(exposition(backlog.logs, "eight", step)) for step in range(steps + 1)]
    with serving(script) as url:
        seen = watch(url, 8, "--count", str(steps + 1))
    assert len(seen) == steps + 1
    assert seen[0]["interval"] is seen[0]["since_start"] is seen[0]["engine_lifetime"]["tokens_per_slot_step"] is None
    for step in range(1, steps + 1):
        expected = tokens_after(step)
        found = seen[step]
        assert found["since_start"]["tokens_per_slot_step"] == expected / (8 * step)
        assert found["engine_lifetime"]["tokens_per_slot_step"] == expected / (8 * step)
        assert found["interval"]["tokens_per_slot_step"] == (expected - tokens_after(step - 1)) / 8
        assert found["interval"]["steps"] == 1
        assert found["segment"] == 1
        assert found["missing"] == []
        assert found["problem"] is None
    assert seen[-1]["since_start"]["tokens_per_slot_step"] == backlog.summary["tokens_per_slot_step"]


@pytest.mark.slow
@pytest.mark.parametrize("stride", [1, 7])
def test_a_run_with_preemptions_and_two_engines_adds_up(stride: int, watch: Watch) -> None:
    law = {"arrivals": {"poisson": {"rate": 100}}, "prompt": {"fixed": 40}, "output": {"fixed": 30}}
    result = slotstep.run(
        slotstep.parse(
            {
                "workload": {"synthetic": {"requests": 60, "tenants": {"a": law}}},
                "engine": {"slots": 4, "token_budget": 64, "pages": 14},
                "cost": {"affine": {"base": "5ms", "per_sequence": "1ms"}},
                "cluster": {"replicas": 2},
            }
        )
    )
    most = max(log.steps for log in result.logs)
    at = [*range(0, most, stride), most]
    with serving([page(exposition(result.logs, "m", step)) for step in at]) as url:
        seen = watch(url, 4, "--count", str(len(at)))
    for step, found in zip(at, seen, strict=True):
        delivered = bought = 0
        for replica, log in enumerate(result.logs):
            steps = result.steps[result.steps["replica"] == replica]
            delivered += int(steps["output"][:step].sum())
            bought += 4 * min(step, log.steps)
        assert found["engine_lifetime"]["tokens_per_slot_step"] == (delivered / bought if bought else None)
    last = seen[-1]
    assert last["since_start"]["tokens_per_slot_step"] == result.summary["tokens_per_slot_step"]
    assert last["since_start"]["preemptions"] == result.summary["preemptions"] > 0
    assert last["since_start"]["prompt_tokens"] == result.summary["tokens"]["prompt"]


def test_tokens_of_steps_add_up_in_every_mode() -> None:
    lines = [{"output": 3 + i % 5, "prompt": 1 + 7 * i % 40, "arrival": f"{i}ms"} for i in range(20)]
    lines[3]["cancel_tokens"] = 2
    modes: list[dict[str, Any]] = [
        {},
        {"evict": "after", "harvest": "next"},
        {"async_scheduling": True, "pages": 6},
        {"batching": "static"},
        {"prefix_cache": True},
    ]
    for mode in modes:
        engine = {"slots": 3, "token_budget": 16, **mode}
        run = slotstep.run(
            slotstep.parse({"workload": {"requests": lines}, "engine": engine, "cost": {"unit": "1ms"}})
        )
        assert run.steps["output"].sum() == run.summary["tokens"]["output"]
        assert (run.steps["output"] >= 0).all()


def test_it_survives_a_restart_a_slow_answer_half_an_answer_and_a_missing_metric(
    backlog: Result, watch: Watch
) -> None:
    def at(step: int) -> str:
        return exposition(backlog.logs, "eight", step)

    without = re.sub(rf".*{engine_metrics.ITERATION.replace('vllm:', '')}.*\n", "", at(50))
    script = [
        page(at(20)),
        failing(503),
        slow(at(30), 15.0),
        half(at(40)),
        half(at(40), announced=False),
        page(without),
        page("<html>not a page of metrics\n"),
        page(at(60)),
        page(at(10)),
        page(at(15)),
    ]
    with serving(script) as url:
        seen = watch(url, 8, "--count", str(len(script)), "--timeout", "3s")
    problems = [found["problem"] for found in seen]
    assert problems[0] is problems[7] is problems[8] is problems[9] is None
    assert problems[1] == "answered 503 Service Unavailable"
    assert problems[2] == "no whole answer within 3 s"
    assert problems[3].startswith("the answer broke off")
    assert problems[4] == "the answer breaks off within a line"
    assert problems[5] == f"{engine_metrics.ITERATIONS} not in the answer"
    assert seen[5]["missing"] == [engine_metrics.ITERATIONS]
    assert problems[6].startswith("the answer is no metrics page")
    assert all(found["interval"] is None for found in seen[1:7])

    back = seen[7]["interval"]
    assert back["steps"] == 40
    assert back["tokens_per_slot_step"] == (tokens_after(60) - tokens_after(20)) / (8 * 40)
    assert [found["segment"] for found in seen] == [1] * 8 + [2, 2]
    assert seen[8]["interval"]["tokens_per_slot_step"] == tokens_after(10) / 80
    assert seen[9]["since_start"]["steps"] == 40 + 10 + 5
    assert seen[9]["since_start"]["tokens"] == tokens_after(60) - tokens_after(20) + tokens_after(15)


def test_a_server_that_goes_and_comes_back_is_waited_for(backlog: Result) -> None:
    def at(step: int) -> Answer:
        return page(exposition(backlog.logs, "eight", step))

    meter = Meter(8)
    with serving([at(20), at(25)]) as url:
        seen = observations(meter, f"{url}/metrics", 1e-6, 5.0, None, None)
        first, second = next(seen), next(seen)
    gone = next(seen)
    with serving([at(3), at(7)], port=int(url.rpartition(":")[2])):
        back, after = next(seen), next(seen)
    assert first.interval is None
    assert second.interval is not None
    assert second.interval.tokens_per_slot_step == (tokens_after(25) - tokens_after(20)) / 40
    assert gone.problem is not None
    assert gone.problem.startswith("no answer: ")
    assert (back.segment, after.segment) == (2, 2)
    assert back.interval is not None
    assert back.interval.tokens_per_slot_step == tokens_after(3) / 24
    assert after.since_start is not None
    assert after.since_start.as_dict()["tokens"] == tokens_after(25) - tokens_after(20) + tokens_after(7)


def test_a_restart_is_seen_even_if_the_counters_have_caught_up() -> None:
    meter = Meter(8)

    def read(tokens: int, steps: int, born: float) -> reading.Reading:
        counters = {engine_metrics.GENERATION: {"0": tokens}, engine_metrics.ITERATIONS: {"0": steps}}
        return reading.Reading(counters, {}, {}, None, (), {"created": born})

    meter.feed(read(80, 10, 1.0), 0.0)
    again = meter.feed(read(90, 12, 2.0), 1.0)
    assert again.segment == 2
    assert again.interval is not None
    assert again.interval.as_dict()["steps"] == 12
    after = meter.feed(read(98, 13, 2.0), 3.0)
    assert after.interval is not None
    assert (after.segment, after.interval.tokens_per_slot_step, after.interval.seconds) == (2, 1.0, 2.0)


WORK = st.integers(0, 9)
STEP = st.tuples(st.sampled_from([False, False, True]), st.sampled_from(["whole", "silence", "torn"]), WORK, WORK)


@given(st.lists(STEP, min_size=1, max_size=25))
def test_the_sums_are_what_was_seen_to_happen(story: list[tuple[bool, str, int, int]]) -> None:
    """Work done between a reading and a restart is lost with the engine; all other work is counted, once."""
    meter = Meter(4)
    tokens, steps, born = 100, 50, 0
    meter.feed(of_one(tokens, steps, born), 0.0)
    known, pending, segments, read = [0, 0], [0, 0], 1, born
    for place, (restarts, what, more_tokens, more_steps) in enumerate(story, start=1):
        if restarts:
            tokens, steps, born, pending = 0, 0, born + 1, [0, 0]
        tokens, steps = tokens + more_tokens, steps + more_steps
        pending = [pending[0] + more_tokens, pending[1] + more_steps]
        if what == "silence":
            seen = meter.silent(float(place), "no answer")
        else:
            seen = meter.feed(of_one(tokens, None if what == "torn" else steps, born), float(place))
        if what == "whole":
            known, pending = [known[0] + pending[0], known[1] + pending[1]], [0, 0]
            segments, read = segments + (born != read), born
        assert (seen.interval is None) == (what != "whole")
        assert seen.since_start is not None
        assert [
            seen.since_start.gained[name] for name in (engine_metrics.GENERATION, engine_metrics.ITERATIONS)
        ] == known
        assert seen.segment == segments


def of_one(tokens: int, steps: int | None, born: int) -> reading.Reading:
    """The reading of one engine, without its histogram if there are no steps."""
    counters = {engine_metrics.GENERATION: {"0": tokens}}
    if steps is not None:
        counters[engine_metrics.ITERATIONS] = {"0": steps}
    return reading.Reading(counters, {}, {}, None, (), {"created": float(born)})


def test_an_engine_that_is_left_out_is_named_and_one_that_joins_begins_where_it_is() -> None:
    meter = Meter(4)

    def read(**engines: tuple[int, int]) -> reading.Reading:
        counters = {
            engine_metrics.GENERATION: {name: tokens for name, (tokens, _) in engines.items()},
            engine_metrics.ITERATIONS: {name: steps for name, (_, steps) in engines.items()},
        }
        return reading.Reading(counters, {}, {}, None, ())

    meter.feed(read(a=(100, 40), b=(50, 20)), 0.0)
    lost = meter.feed(read(a=(104, 41)), 1.0)
    assert lost.problem == 'vllm:generation_tokens_total of engine="b" not in the answer'
    assert lost.interval is None
    joined = meter.feed(read(a=(108, 42), b=(54, 21), c=(1000, 999)), 2.0)
    assert joined.segment == 1
    assert joined.interval is not None
    assert joined.interval.as_dict()["tokens"] == 8 + 4
    assert joined.interval.slot_steps == 4 * (2 + 1)


def test_gauges_are_samples_and_the_cache_is_named_by_its_pages(backlog: Result) -> None:
    found = Meter(8).feed(reading.parse(exposition(backlog.logs, "eight", 100)), 0.0).sampled
    step = backlog.steps.iloc[100]
    assert found["running"] == 8
    assert found["waiting"] == found["waiting_by_reason"]["capacity"] == step["waiting"]
    assert found["pages_used"] == step["pages_used"]
    assert found["pages_total"] == 8192


def test_the_engines_own_text_format_reads_alike() -> None:
    text = """\
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1.0e+06
vllm:generation_tokens_total{engine="1",model_name="m"} 24.0
# TYPE vllm:generation_tokens_created gauge
vllm:generation_tokens_created{engine="0",model_name="m"} 1.7e+09
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf",model_name="m"} 5000.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 5000.0
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 3.0e+06
vllm:iteration_tokens_total_bucket{engine="1",le="+Inf",model_name="m"} 3.0
vllm:iteration_tokens_total_count{engine="1",model_name="m"} 3.0
vllm:iteration_tokens_total_sum{engine="1",model_name="m"} 30.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1.0
"""
    found = reading.parse(text)
    seen = Meter(256).feed(found, 0.0)
    assert seen.engine_lifetime is not None
    assert seen.engine_lifetime.tokens_per_slot_step == 1_000_024 / (256 * 5_003)
    assert seen.sampled["page_share"] == 0.375
    assert seen.sampled["pages_used"] == 75
    assert set(found.missing) == {
        *engine_metrics.COUNTERS[2:],
        engine_metrics.RUNNING,
        engine_metrics.WAITING,
        engine_metrics.WAITING_BY_REASON,
    }
    two = text.replace('engine="1",model_name="m"', 'engine="1",model_name="n"')
    with pytest.raises(ValueError, match="the engine serves m, n; expected --model with one of them"):
        reading.parse(two)
    assert reading.parse(two, "n").counters[engine_metrics.GENERATION] == {"1": 24}
    with pytest.raises(NoAnswerError, match="not a finite number"):
        reading.parse(text.replace("24.0", "NaN"))


def test_once_reads_a_file_that_a_run_wrote(tmp_path: Path, watch: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "metrics"
    with pytest.raises(SystemExit) as left:
        app.main(["run", str(EXAMPLES / "eight-static.yaml"), "--json", "--openmetrics", str(target)])
    assert not left.value.code
    summary = json.loads(capsys.readouterr().out)
    with serving([page(target.read_text())]) as url:
        (found,) = watch(url, 8, "--once")
    assert found["engine_lifetime"]["tokens_per_slot_step"] == summary["tokens_per_slot_step"] == 172 / 960
    assert found["engine_lifetime"]["slot_steps"] == 960
    with serving([failing(404)]) as url:
        assert watch(url, 8, "--once", code=1)[0]["problem"] == "answered 404 Not Found"


def test_rows_are_kept_and_gauges_published(
    backlog: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[str] = []
    shown = exporter.Exporter.show

    def and_look(self: exporter.Exporter, seen: Any) -> None:
        shown(self, seen)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            published.append(answer.read().decode())

    monkeypatch.setattr(exporter.Exporter, "show", and_look)
    kept = tmp_path / "kept.csv"
    script = [page(exposition(backlog.logs, "eight", step)) for step in (10, 30)] + [failing(500)]
    for _ in range(2):
        options = ["--csv", str(kept), "--export", "127.0.0.1:0", "--count", "3", "--interval", "1us"]
        with serving(script) as url, pytest.raises(SystemExit) as left:
            app.main(["watch", url, "--slots", "8", *options])
        assert not left.value.code
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 6
    assert f"interval {(tokens_after(30) - tokens_after(10)) / 160:.4f} tokens per slot-step" in said[1]
    assert "sampled: 8 running" in said[1]
    tokens = tokens_after(30) - tokens_after(10)
    expected = (
        f"answered 500 Internal Server Error; since start {tokens / 160:.4f} tokens per slot-step ({tokens} tokens, "
    )
    assert expected in said[2]
    with kept.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert rows[1]["tokens_per_slot_step"] == repr((tokens_after(30) - tokens_after(10)) / 160)
    assert [row["problem"] for row in rows[2::3]] == ["answered 500 Internal Server Error"] * 2
    interval = f'slotstep_tokens_per_slot_step{{window="interval"}} {(tokens_after(30) - tokens_after(10)) / 160!r}'
    assert interval in published[1].splitlines()
    assert "slotstep_engine_answered 0.0" in published[2].splitlines()
    kept.write_text("a,b\n")
    with serving(script) as url, pytest.raises(SystemExit) as left:
        app.main(["watch", url, "--slots", "8", "--csv", str(kept), "--count", "1"])
    assert left.value.code == 2
    assert "has other columns; expected time,segment" in capsys.readouterr().err


def test_what_cannot_be_watched_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for options, words in {
        ("ftp://x",): "error: URL: found 'ftp://x'; expected a URL such as http://localhost:8000/metrics",
        ("x", "--interval", "5"): "error: --interval: found '5', without a unit",
        ("x", "--timeout", "0"): "error: --timeout: found 0; expected a duration above 0",
        ("x", "--export", "9100"): "error: --export 9100: found '9100'; expected [HOST]:PORT, such as :9100",
    }.items():
        with pytest.raises(SystemExit) as left:
            app.main(["watch", "--slots", "8", "--count", "1", *options])
        assert left.value.code == 2
        assert capsys.readouterr().err.startswith(words)
    assert address("localhost:8000") == "http://localhost:8000/metrics"
    assert address("https://a/b") == "https://a/b"


def test_a_terminal_shows_the_same(backlog: Result) -> None:
    meter = Meter(8)
    meter.feed(reading.parse(exposition(backlog.logs, "eight", 10)), 0.0)
    seen = meter.feed(reading.parse(exposition(backlog.logs, "eight", 20)), 5.0)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(show.screen("http://x", seen))
    text = console.export_text()
    expected = Fraction(tokens_after(20) - tokens_after(10), 80)
    assert f"{float(expected):.6f}" in text
    assert "sampled: 8 running" in text


def test_the_dashboard_plots_what_is_published() -> None:
    board = json.loads((ROOT / "docs" / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    used = {name for query in queries for name in re.findall(r"(?:vllm:|slotstep_)\w+", query)}
    ours = set(exporter.NAMES)
    theirs = {*engine_metrics.COUNTERS, *engine_metrics.GAUGES}
    assert used <= ours | theirs
    assert exporter.TOKENS in used
    assert set(engine_metrics.COUNTERS) - {engine_metrics.PROMPT} <= used
    assert {"slots", "datasource"} <= {variable["name"] for variable in board["templating"]["list"]}

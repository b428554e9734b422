"""Random cases: the rules, restated naively, and our scheduler decide the same in every field of every step."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from random_cases import case
from repository import ROOT
from rules import Rules

from slotstep.parity.cases import Case, replay
from slotstep.parity.parity import compare, lines_of

BATCHES, EACH = 8, 75


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_our_scheduler_decides_what_the_rules_say(batch):
    for seed in range(batch * EACH, (batch + 1) * EACH):
        drawn = case(seed)
        decided = [*Rules(drawn).lines(), {"type": "summary"}]
        report = compare(decided, replay(Case.model_validate_json(json.dumps(drawn))))
        assert not report.mismatches, f"seed {seed}: {drawn['config']}\n" + "\n".join(lines_of(report))


def test_the_example_is_what_the_rules_say():
    folder = ROOT / "examples" / "parity"
    logged = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert logged[:-1] == list(Rules(json.loads((folder / "case.json").read_text())).lines())
    assert any(line["preempted"] for line in logged[:-1])
    assert any(line["hit_tokens"] for line in logged[:-1])


@pytest.mark.slow
def test_the_cases_are_about_something():
    seen = Counter()
    for seed in range(BATCHES * EACH):
        drawn = case(seed)
        lines = list(Rules(drawn).lines())
        preempted = any(line.get("preempted") for line in lines)
        late = drawn["config"]["async_scheduling"]
        seen["preempted"] += preempted
        seen["preempted with a step in flight"] += preempted and late
        seen["preempted by priority"] += preempted and drawn["config"]["policy"] == "priority"
        seen["hits"] += any(line.get("hit_tokens") for line in lines)
        seen["hits with a step in flight"] += late and any(line.get("hit_tokens") for line in lines)
        seen["hits after a preemption"] += any(
            set(line.get("resumed", ())) & set(line.get("hit_tokens", ())) for line in lines
        )
        seen["nobody admitted though a slot was free"] += any(
            line.get("waiting") and len(line["running"]) < drawn["config"]["max_num_seqs"] for line in lines
        )
        seen["a watermark"] += drawn["config"]["watermark"] > 0 and len(drawn["requests"]) > 1
    assert len(seen) == 8
    assert min(seen.values()) >= 15, seen

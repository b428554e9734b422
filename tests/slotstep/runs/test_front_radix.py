"""The radix cache in a scenario: how it is chosen, what it finds, and what it does not go with."""

from __future__ import annotations

from typing import Any

import pytest

import slotstep
from slotstep.runs.result import Result
from traces.errors import BadInput


def mapping(engine: dict[str, Any], *prompts: list[int], **keys: Any) -> dict[str, Any]:
    """Requests a second apart, of one output token each."""
    requests = [
        {"id": f"r{place}", "arrival": f"{place}s", "tokens": tokens, "output": 1}
        for place, tokens in enumerate(prompts)
    ]
    return {"name": "tree", "workload": {"requests": requests}, "engine": engine, "cost": {"unit": "10ms"}, **keys}


def hits(result: Result) -> list[int]:
    """Tokens found by each admission, in order."""
    return [value for _, kind, _, value in result.log.event_table().tolist() if kind == 2]


def family(number: int, length: int, tail: int = 0) -> list[int]:
    """The first tokens of a family of prompts, and one token more that tells it from the others."""
    return [1000 * number + place for place in range(length)] + ([10**6 + tail] if tail else [])


@pytest.mark.parametrize(
    ("written", "eviction"),
    [("radix", "lru"), ({"radix": {}}, "lru"), ({"radix": {"eviction": "slru"}}, "slru")],
)
def test_it_is_chosen_where_the_prefix_cache_is_switched_on(written: Any, eviction: str) -> None:
    engine = slotstep.parse(mapping({"prefix_cache": written}, [1])).engine
    assert engine.radix is not None
    assert (engine.prefix_cache, engine.share, engine.radix.eviction) == (True, "tenant", eviction)


def test_single_tokens_are_found_where_blocks_end_with_a_page() -> None:
    prompts = [family(1, 20, tail) for tail in (1, 2, 3)]
    for engine, found in (
        ({"prefix_cache": True, "page_size": 16}, [0, 16, 16]),
        ({"prefix_cache": "radix", "page_size": 16}, [0, 16, 16]),
        ({"prefix_cache": "radix", "page_size": 1}, [0, 20, 20]),
    ):
        assert hits(slotstep.run(slotstep.parse(mapping(engine, *prompts)))) == found


@pytest.mark.parametrize(("eviction", "last"), [("lru", 39), ("mru", 0)])
def test_the_eviction_decides_what_the_last_request_finds(eviction: str, last: int) -> None:
    """Room for two of three prompts: the third evicts the one used least recently, or most recently."""
    engine = {"prefix_cache": {"radix": {"eviction": eviction}}, "page_size": 1, "pages": 100}
    prompts = [family(number, 40) for number in (1, 2, 1, 3, 1)]
    result = slotstep.run(slotstep.parse(mapping(engine, *prompts)))
    assert hits(result) == [0, 0, 39, 0, last]
    assert result.summary["cache"]["evictions"] > 0


def test_it_leaves_no_file_for_another_run() -> None:
    prompts = [family(1, 40)]
    assert slotstep.run(slotstep.parse(mapping({"prefix_cache": "radix"}, *prompts))).cache is None
    assert slotstep.run(slotstep.parse(mapping({"prefix_cache": True}, *prompts))).cache is not None


@pytest.mark.parametrize(
    ("engine", "policy", "complaint"),
    [
        (
            {"prefix_cache": {"radix": {"eviction": "lur"}}},
            "fcfs",
            "engine.radix.eviction: found 'lur'; expected 'lru', ",
        ),
        ({"prefix_cache": "tree"}, "fcfs", "engine.prefix_cache: found 'tree'; expected true or false"),
        ({"radix": {}}, "fcfs", "engine: radix needs prefix_cache: true"),
        (
            {"prefix_cache": "radix", "warm": "c.json.gz"},
            "fcfs",
            "engine: warm needs a prefix cache of blocks; found radix",
        ),
        (
            {"prefix_cache": "radix", "model": "m"},
            "fcfs",
            "engine: model needs a prefix cache of blocks; found radix",
        ),
        (
            {"prefix_cache": {"radix": {"keeps_least_urgent": True}}},
            "fcfs",
            "engine.radix: keeps_least_urgent needs eviction: priority",
        ),
        ({"prefix_cache": True}, "dfs_weight", "policy: dfs_weight needs engine.prefix_cache: radix"),
        ({}, "lpm", "policy: lpm needs engine.prefix_cache: true"),
    ],
)
def test_what_it_does_not_go_with_is_said_in_one_line(engine: dict[str, Any], policy: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        slotstep.run(slotstep.parse(mapping(engine, [1], policy=policy)))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)

"""The prefix cache of a run: what is found, what is said of it, and what another run starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import code_of, complaint

import slotstep
from reports.exports.openmetrics import exposition
from reports.text.run_facts import facts
from slotstep.experiments.sweeps import identity
from slotstep.runs.result import Result
from slotstep.scenario import document
from traces.errors import BadInput

PAGE = 16


def lines(*prompts: list[int], **keys: Any) -> list[dict[str, Any]]:
    """Requests a second apart, of one output token each."""
    return [
        {"id": f"r{place}", "arrival": f"{place}s", "tokens": tokens, "output": 1, **keys}
        for place, tokens in enumerate(prompts)
    ]


def mapping(requests: list[dict[str, Any]], **engine: Any) -> dict[str, Any]:
    """A scenario of these requests on an engine with a prefix cache."""
    return {
        "name": "cached",
        "workload": {"requests": requests},
        "engine": {"prefix_cache": True, "page_size": PAGE, "pages": 64, **engine},
        "cost": {"unit": "10ms"},
    }


def run(requests: list[dict[str, Any]], **engine: Any) -> Result:
    """A run of it."""
    return slotstep.run(slotstep.parse(mapping(requests, **engine)))


def hits(result: Result) -> list[int]:
    """Tokens found by each admission, in order."""
    return [value for _, kind, _, value in result.log.event_table().tolist() if kind == 2]


def prompt(head: int, pages: int, tail: int = 1) -> list[int]:
    """So many pages that begin with a token of their own, and a few tokens more."""
    return [head] + [7] * (pages * PAGE - 1) + [8] * tail


def test_a_repeated_prompt_is_found_from_its_second_occurrence_on() -> None:
    result = run(lines(*[prompt(1, 3)] * 4))
    assert hits(result) == [0, 48, 48, 48]
    cache = result.summary["cache"]
    assert (cache["queried_tokens"], cache["hit_tokens"], cache["hit_rate"]) == (196, 144, 144 / 196)
    assert (cache["evictions"], cache["warm_pages"], cache["top_prompt_share"]) == (0, 0, None)
    assert result.summary["tokens"]["cached"] == 144


def test_what_resumed_requests_look_up_is_a_row_of_its_own() -> None:
    requests = [{"id": f"r{place}", "prompt": 160, "output": 160} for place in range(10)]
    engine = {"preset": "vllm", "num_gpu_blocks": 151}
    scenario = slotstep.parse({"workload": {"requests": requests}, "engine": engine, "cost": {"unit": "10ms"}})
    result = slotstep.run(scenario)
    cache = result.summary["cache"]
    assert result.summary["preemptions"] > 0
    assert (cache["queried_tokens"], cache["hit_tokens"], cache["hit_rate"]) == (10 * 160, 0, None)
    resumed = [value for place, value in enumerate(hits(result)) if place >= 10]
    assert len(resumed) == result.summary["preemptions"]
    assert cache["resumed_hit_tokens"] == sum(resumed) == result.summary["tokens"]["cached"]
    assert cache["resumed_queried_tokens"] >= len(resumed) * 161
    page = exposition([result.log], "m")
    assert 'vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1600.0' in page
    assert 'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 0.0' in page


def test_what_a_cache_would_find_cannot_be_told_without_content() -> None:
    mapping = {"engine": {"preset": "vllm"}, "cost": {"unit": "10ms"}}
    blank, told = (
        slotstep.run(slotstep.parse({"workload": {"requests": requests}, **mapping})).summary
        for requests in (
            [{"prompt": 40, "output": 2}] * 2,
            [{"tokens": list(range(k, k + 40)), "output": 2} for k in (0, 50)],
        )
    )
    assert blank["cache"]["hit_rate"] is None
    assert "what would be found cannot be told" in dict(facts(blank))["cache"]
    assert told["cache"]["hit_rate"] == 0
    assert "0.0% of 80 tokens looked up were found" in dict(facts(told))["cache"]


def test_at_least_one_token_is_computed() -> None:
    assert hits(run(lines(*[prompt(1, 3, tail=0)] * 2))) == [0, 32]


def test_changing_an_early_token_ends_reuse_from_there_on() -> None:
    first = prompt(1, 4)
    for changed in range(len(first) - 1):
        second = [*first]
        second[changed] = 99
        assert hits(run(lines(first, second))) == [0, changed // PAGE * PAGE]


@pytest.mark.parametrize("rounds", [2, 5])
def test_a_cyclic_scan_over_one_prefix_more_than_fit_finds_nothing(rounds: int) -> None:
    scan = [prompt(head, 4) for head in range(1, 6)] * rounds  # 4 pages each and one for the tail, never kept
    room_for_four = 4 * 4 + 1
    assert set(hits(run(lines(*scan), pages=room_for_four))) == {0}
    enough = hits(run(lines(*scan), pages=5 * 4 + 1))
    assert enough == [0] * 5 + [64] * 5 * (rounds - 1)


def test_with_less_than_one_prefix_too_few_some_heads_survive() -> None:
    scan = [prompt(head, 4) for head in range(1, 6)] * 3
    found = hits(run(lines(*scan), pages=5 * 4 + 1 - 2))[5:]
    assert 0 < sum(found) < 64 * len(found)  # freed tail first: the tails of the oldest were taken, their heads not


def test_blocks_are_found_as_tokens_are() -> None:
    requests = [
        {"id": "a", "blocks": [1, 2, 3], "block_size": 32, "prompt": 70, "output": 1},
        {"id": "b", "arrival": "1s", "blocks": [1, 2, 4], "block_size": 32, "prompt": 80, "output": 1},
        {"id": "c", "arrival": "2s", "blocks": [1, 2], "block_size": 16, "prompt": 32, "output": 1},
        {"id": "d", "arrival": "3s", "prompt": 70, "output": 1},
    ]
    assert hits(run(requests)) == [0, 64, 0, 0]  # a block of another size is another block


def test_blocks_that_do_not_line_up_with_pages_are_refused() -> None:
    with pytest.raises(BadInput, match="workload: request a has blocks of 24 tokens and the engine pages of 16"):
        run([{"id": "a", "blocks": [1], "block_size": 24, "output": 1}])


@pytest.mark.parametrize(("share", "found"), [("none", 0), ("tenant", 0), ("all", 48)])
def test_who_may_share_decides_whose_pages_are_hit(share: str, found: int) -> None:
    requests = lines(prompt(1, 3), prompt(1, 3))
    requests[1]["tenant"] = "another"
    assert hits(run(requests, share=share)) == [0, found]


def test_another_adapter_has_other_pages() -> None:
    requests = lines(prompt(1, 3), prompt(1, 3), prompt(1, 3), adapter="a")
    requests[1]["adapter"] = "b"
    assert hits(run(requests)) == [0, 0, 48]


def test_the_table_says_how_the_cache_was_used_and_when_one_prompt_dominates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    file = tmp_path / "cached.yaml"
    repeated, once = prompt(1, 3), prompt(2, 1)
    file.write_text(document.dump(mapping(lines(repeated, once, repeated, once, repeated, repeated))))
    assert code_of("run", file) == 0
    words = capsys.readouterr().out
    assert "69.6% of 230 tokens looked up were found; 0 evictions" in " ".join(words.split())  # 3 x 48 + 16 = 160
    assert "cold at the start. 90.0% of the hit tokens come from one prompt" in " ".join(words.split())
    file.write_text(document.dump(mapping(lines(repeated, prompt(2, 3), repeated, prompt(2, 3)))))
    assert code_of("run", file) == 0
    assert "one prompt" not in capsys.readouterr().out
    assert run(lines(repeated), prefix_cache=False).summary["cache"] is None


def test_a_run_starts_from_the_cache_that_another_left_and_from_nothing_else(tmp_path: Path) -> None:
    first = run(lines(prompt(1, 3), prompt(2, 3)))
    first.save(tmp_path)
    again = lines(prompt(2, 3), prompt(1, 2), prompt(3, 1))
    assert hits(run(again)) == [0, 0, 0]
    warm = run(again, warm=str(tmp_path / "cache.json.gz"))
    assert hits(warm) == [48, 32, 0]
    assert warm.summary["cache"]["warm_pages"] == 6
    # On four pages the most recently used are there: the second prompt, and of the first, freed tail first, the head.
    for repeated, found in ((prompt(2, 3), 48), (prompt(1, 3), 16)):
        assert hits(run(lines(repeated), warm=str(tmp_path / "cache.json.gz"), pages=4)) == [found]
    saved = {path.name for path in tmp_path.iterdir()}
    assert "cache.json.gz" in saved


def test_the_cache_is_no_file_where_nobody_could_use_it(tmp_path: Path) -> None:
    for engine in ({"share": "none"}, {"prefix_cache": False}):
        run(lines(prompt(1, 3)), **engine).save(tmp_path)
        assert not (tmp_path / "cache.json.gz").exists()


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"page_size": 8}, "its page_size is 16, this engine's 8"),
        ({"share": "all"}, "its share is tenant, this engine's all"),
        ({"model": "other"}, "its model is None, this engine's other"),
        ({"positions": "rope"}, "its positions is None, this engine's rope"),
    ],
)
def test_a_cache_of_another_engine_is_refused(tmp_path: Path, engine: dict[str, Any], words: str) -> None:
    run(lines(prompt(1, 3))).save(tmp_path)
    with pytest.raises(BadInput) as caught:
        run(lines(prompt(1, 3)), warm=str(tmp_path / "cache.json.gz"), **engine)
    assert str(caught.value) == f"{tmp_path}/cache.json.gz: {words}; nothing in it could be found"


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "cached.yaml"
    (tmp_path / "warm.gz").write_text("{}")
    scenario.write_text(document.dump(mapping(lines(prompt(1, 1)), warm="warm.gz")))
    assert complaint(capsys, "run", scenario).startswith(f"{tmp_path}/warm.gz: expected a cache.json.gz that --out")
    (tmp_path / "warm.gz").unlink()
    assert complaint(capsys, "run", scenario) == f"{tmp_path}/warm.gz: cannot be read: No such file or directory"


def pools(*groups: dict[str, Any]) -> dict[str, Any]:
    """Two prompts, the first for the first replica, the second for the second."""
    requests = lines(prompt(1, 3), prompt(2, 3))
    cluster = {"replicas": list(groups), "router": "round_robin"}
    return {**mapping(requests), "cluster": cluster}


def left(path: Path, head: int) -> str:
    """A file with the cache that a run of one prompt leaves."""
    content = run(lines(prompt(head, 3))).cache
    assert content is not None
    path.write_bytes(content)
    return str(path)


def found(settings: dict[str, Any]) -> list[int]:
    """Tokens found by the only admission of each replica."""
    logs = slotstep.run(slotstep.parse(settings)).logs
    return [value for log in logs for _, kind, _, value in log.event_table().tolist() if kind == 2]


def test_groups_of_replicas_start_from_caches_of_their_own(tmp_path: Path) -> None:
    one, two = ({"engine": {"warm": left(tmp_path / f"{head}.gz", head)}} for head in (1, 2))
    assert found(pools({}, {})) == [0, 0]
    assert found(pools(one, {})) == [48, 0]
    assert found(pools(one, two)) == [48, 48]
    assert found(pools(two, one)) == [0, 0]
    with pytest.raises(BadInput, match="holds the caches of 1 replicas; 2 start from it"):
        found(pools(one, one))
    again = slotstep.parse(pools(one, two))
    assert slotstep.run(slotstep.parse(slotstep.resolved(again))).summary["cache"]["hit_tokens"] == 96


def test_a_cache_that_a_group_names_has_to_be_there_and_to_fit(tmp_path: Path) -> None:
    missing = {"engine": {"warm": str(tmp_path / "warm.gz")}}
    with pytest.raises(BadInput, match=r"warm\.gz: cannot be read: No such file or directory"):
        found(pools({}, missing))
    other = {"engine": {"warm": left(tmp_path / "other.gz", 1), "page_size": 8}}
    with pytest.raises(BadInput, match="its page_size is 16, this engine's 8"):
        found(pools({}, other))


def test_the_name_of_a_run_depends_on_the_caches_that_its_groups_start_from(tmp_path: Path) -> None:
    names = []
    for head in (1, 2):
        warm = {"engine": {"warm": left(tmp_path / "warm.gz", head)}}
        names.append(identity.name(slotstep.resolved(slotstep.parse(pools(warm, {}))), {}))
    assert names[0] != names[1]


def test_caches_are_left_where_all_replicas_are_alike_whatever_the_scenario_says_besides() -> None:
    small = {"count": 2, "engine": {"page_size": 8}}
    assert slotstep.run(slotstep.parse(pools(small))).cache is not None
    assert slotstep.run(slotstep.parse(pools(small, {}))).cache is None

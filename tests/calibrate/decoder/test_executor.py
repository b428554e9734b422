"""The real engine on a CPU: its tokens are the reference's, however its steps are cut, moved and overlapped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_model import reference, saved, scores_of
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from calibrate.decoder.engine.cuda_graphs import default_capture_sizes
from calibrate.decoder.engine.executor import Executor
from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import CannotRun, OutOfMemory, Row, Step
from calibrate.decoder.model.sampling import drawn, uniform
from calibrate.hardware.device_memory import host_bytes, plan_memory, step_bytes
from calibrate.models.decoder_shape import SHAPES, ModelShape

PROMPTS = {0: list(range(5, 40)), 1: [7, 7, 300, 1], 2: [(11 * n) % 320 for n in range(50)]}
GENERATED = 9


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, list[int]]]:
    """A checkpoint, and the tokens with which the reference continues each prompt, no cache at all."""
    model = reference("Llama")
    continued = {}
    for request, prompt in PROMPTS.items():
        tokens = list(prompt)
        for _ in range(GENERATED):
            tokens.append(int(scores_of(model, torch.tensor(tokens))[-1].argmax()))
        continued[request] = tokens[len(prompt) :]
    return saved(model, tmp_path_factory.mktemp("llama")), continued


def options(**changes: Any) -> EngineOptions:
    base = EngineOptions(
        device="cpu", page_size=8, pages=40, host_pages=20, slots=4, token_budget=64, max_model_len=96
    )
    return replace(base, **changes)


@pytest.fixture
def engine(llama: tuple[Path, dict[int, list[int]]]) -> Iterator[Executor]:
    with open_engine(str(llama[0]), options(weights=llama[0])) as opened:
        cache = opened.decoder.cache.data
        opened.stream.do(lambda: cache.fill_(float("nan")))
        for request, prompt in PROMPTS.items():
            opened.begin(request, prompt)
        yield opened


@pytest.fixture(scope="module")
def right(llama: tuple[Path, dict[int, list[int]]]) -> dict[int, list[int]]:
    return llama[1]


PAGES = {0: [3, 1, 4, 15, 9, 2, 6], 1: [5, 35, 8], 2: [7, 10, 11, 12, 13, 14, 16, 17]}


def row(request: int, start: int, count: int, pages: list[int] | None = None) -> Row:
    """A row that yields exactly when it reaches the end of the prompt, or is past it."""
    reach = start + count
    return Row(request, start, count, pages or PAGES[request], reach >= len(PROMPTS[request]))


def run(engine: Executor, *rows: Row) -> list[int]:
    return list(engine.collect(engine.launch(Step(rows))).tokens)


@pytest.mark.slow
def test_a_prompt_in_chunks_and_tokens_one_by_one(engine: Executor, right: dict[int, list[int]]) -> None:
    assert run(engine, row(0, 0, 20)) == []
    tokens = run(engine, row(0, 20, 15))
    for position in range(35, 43):
        tokens += run(engine, row(0, position, 1))
    assert tokens == right[0]


def test_chunks_and_decodes_of_many_in_one_step(engine: Executor, right: dict[int, list[int]]) -> None:
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    computed = dict.fromkeys(PROMPTS, 0)
    for step in range(12):
        rows = []
        for request, prompt in PROMPTS.items():
            left = len(prompt) - computed[request]
            count = min(left, 16) if left > 0 else 1
            if step >= request and len(found[request]) < GENERATED:
                rows.append(row(request, computed[request], count))
                computed[request] += count
        yielding = [one.request for one in rows if one.yields]
        for request, token in zip(yielding, run(engine, *rows), strict=True):
            found[request].append(token)
    assert found[0] == right[0]
    assert found[1] == right[1]
    assert found[2] == right[2][: len(found[2])]
    assert len(found[2]) == 7


def test_the_next_step_is_launched_before_the_token_is_known(engine: Executor, right: dict[int, list[int]]) -> None:
    flying = [engine.launch(Step((row(1, 0, 4), row(0, 0, 35))))]
    found: dict[int, list[int]] = {0: [], 1: []}
    for step in range(1, GENERATED):
        flying.append(engine.launch(Step((row(1, 3 + step, 1), row(0, 34 + step, 1)))))
        one, other = engine.collect(flying.pop(0)).tokens
        found[1].append(one)
        found[0].append(other)
    one, other = engine.collect(flying.pop(0)).tokens
    assert found[1] + [one] == right[1]
    assert found[0] + [other] == right[0]


def test_launch_does_not_wait_for_the_device(engine: Executor) -> None:
    gate = threading.Event()

    def wait() -> Tensor:
        gate.wait()
        return torch.zeros(0)

    engine.stream.submit(wait)
    handle = engine.launch(Step((row(1, 0, 4),)))
    assert not handle.pending.future.done()  # type: ignore[attr-defined]
    gate.set()
    assert len(engine.collect(handle).tokens) == 1


def test_preempted_and_computed_again_elsewhere(engine: Executor, right: dict[int, list[int]]) -> None:
    tokens = run(engine, row(0, 0, 35)) + run(engine, row(0, 35, 1)) + run(engine, row(0, 36, 1))
    others = [20, 21, 22, 23, 24, 25]
    tokens += run(engine, row(0, 0, 38, others)) + run(engine, row(0, 38, 1, others))
    assert tokens == right[0][:5]


def test_swapped_out_overwritten_and_back_in_other_pages(engine: Executor, right: dict[int, list[int]]) -> None:
    tokens = run(engine, row(0, 0, 35)) + run(engine, row(0, 35, 1))
    out = tuple(zip(PAGES[0][:5], [4, 0, 7, 1, 2], strict=True))
    over = Row(2, 0, 40, PAGES[0], False)
    assert engine.collect(engine.launch(Step((over,), swap_out=out))).tokens == ()
    back = [30, 31, 32, 33, 34]
    home = Step((row(0, 36, 1, back),), swap_in=tuple(zip([4, 0, 7, 1, 2], back, strict=True)))
    tokens += engine.collect(engine.launch(home)).tokens
    tokens += run(engine, row(0, 37, 1, back))
    assert tokens == right[0][:4]


def test_a_place_of_one_who_has_ended_is_given_to_the_next(engine: Executor, right: dict[int, list[int]]) -> None:
    run(engine, row(2, 0, 50))
    engine.end(2)
    engine.begin(9, PROMPTS[1])
    found = run(engine, Row(9, 0, 4, PAGES[1], True))
    found += run(engine, Row(9, 4, 1, PAGES[1], True))
    assert found == right[1][:2]
    assert engine.tokens.used == 2


def test_more_requests_than_there_was_room_for(engine: Executor, right: dict[int, list[int]]) -> None:
    run(engine, row(0, 0, 35))
    for request in range(100, 200):
        engine.begin(request, [request])
        run(engine, Row(request, 0, 1, [39], True))
    assert len(engine.tokens.tokens) >= 102
    assert run(engine, row(0, 35, 1)) == right[0][1:2]


@pytest.mark.slow
def test_padded_batches_give_the_same_tokens(llama: tuple[Path, dict[int, list[int]]]) -> None:
    folder, right = llama
    padded = options(weights=folder, attention="triton", capture_sizes=(2, 4), dtype="float32")
    with open_engine(str(folder), padded) as engine:
        for request in (0, 1):
            engine.begin(request, PROMPTS[request][:8])
        prompts = Step((Row(0, 0, 8, PAGES[0], True), Row(1, 0, 4, PAGES[1], True)))
        engine.collect(engine.launch(prompts))
        one = engine.collect(engine.launch(Step((Row(1, 4, 1, PAGES[1], True),))))
        assert one.tokens == tuple(right[1][1:2])
        assert one.batch == 2
        engine.begin(2, PROMPTS[1])
        engine.begin(3, [1, 2, 3, 4, 5])
        third = Step((Row(2, 0, 1, [20], False), Row(1, 5, 1, PAGES[1], True), Row(3, 0, 1, [21], False)))
        mixed = engine.collect(engine.launch(third))
        assert mixed.tokens == tuple(right[1][2:3])
        assert mixed.batch == 4
        rest = engine.collect(engine.launch(Step((Row(2, 1, 3, [20], True),))))
        assert rest.tokens == tuple(right[1][:1])
        assert rest.batch == 1


def test_a_decode_step_in_one_thread_says_how_long_it_computed(engine: Executor) -> None:
    outcome = engine.collect(engine.launch(Step((row(2, 0, 50),))))
    assert outcome.cpu_ns is not None
    assert outcome.cpu_ns > 0
    assert outcome.device_ns > 0
    assert outcome.batch == 1


def test_cpu_time_is_not_told_where_other_threads_compute_too() -> None:
    with open_engine(SMALL, options(threads=2)) as engine:
        engine.begin(0, [1, 2])
        assert engine.collect(engine.launch(Step((Row(0, 0, 2, [0], True),)))).cpu_ns is None


SMALL = ModelShape("small", 2, 64, 160, 4, 2, 16, 320, dtype="float32", max_model_len=256)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (Step(()), "a step has 0 rows; expected 1 to 4"),
        (Step((Row(5, 0, 1, [0], False),)), "request 5: has not begun"),
        (Step((row(1, 0, 2), row(1, 2, 2))), "request 1: is in the step twice"),
        (Step((row(1, 0, 5),)), "positions 0 to 4; expected at least one, of the 4 tokens known"),
        (Step((Row(1, 0, 3, PAGES[1], True),)), "yields after 3 of 4 tokens known"),
        (Step((Row(0, 0, 35, [1, 2, 3], False),)), "3 pages for 35 positions; expected 5"),
        (Step((Row(1, 0, 4, [40], True),)), "page 40 does not exist; expected 0 to 39"),
        (Step((Row(1, 0, 4, [-1], True),)), "page -1 does not exist"),
        (Step((row(0, 0, 35), row(2, 0, 50))), "a step of 85 positions; expected at most 64"),
        (Step((row(1, 0, 4),), swap_out=((1, 20),)), "page 1 and host page 20; expected below 40 and 20"),
        (Step((row(1, 0, 4),), swap_in=((1, 40),)), "page 40 and host page 1; expected below 40 and 20"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused_and_leaves_no_trace(
    engine: Executor, right: dict[int, list[int]], step: Step, complaint: str
) -> None:
    with pytest.raises(ValueError, match=r"request|step|page") as refusal:
        engine.launch(step)
    assert complaint in str(refusal.value)
    assert run(engine, row(1, 0, 4)) == right[1][:1]


@pytest.mark.parametrize(
    ("prompt", "complaint"),
    [
        ([], "0 tokens of prompt; expected 1 to 96"),
        ([0] * 97, "97 tokens of prompt; expected 1 to 96"),
        ([320], "no token 320; expected 0 to 319"),
        ([-1], "no token -1"),
    ],
)
def test_a_prompt_that_makes_no_sense_is_refused(engine: Executor, prompt: list[int], complaint: str) -> None:
    with pytest.raises(ValueError, match="request 9") as refusal:
        engine.begin(9, prompt)
    assert complaint in str(refusal.value)


def test_the_longest_request_ends_with_its_last_token() -> None:
    with open_engine(SMALL, options(max_model_len=8, pages=5)) as engine:
        engine.begin(0, [3] * 8)
        assert len(run(engine, Row(0, 0, 8, [2], True))) == 1
        with pytest.raises(ValueError, match="a token after 9; expected at most 8"):
            engine.launch(Step((Row(0, 8, 1, [2, 3], True),)))


# ---------------------------------------------------------------------- sampling


def sampled(engine: Executor, requests: tuple[int, ...]) -> dict[int, list[int]]:
    """Five tokens for each of these, together in every step."""
    found: dict[int, list[int]] = {request: [] for request in requests}
    for request in requests:
        engine.begin(request, [request + 1] * 3)
    for step in range(5):
        start, count = (0, 3) if step == 0 else (2 + step, 1)
        rows = [Row(request, start, count, [request], True) for request in requests]
        for request, token in zip(requests, run(engine, *rows), strict=True):
            found[request].append(token)
    for request in requests:
        engine.end(request)
    return found


def test_sampled_tokens_depend_on_seed_and_place_not_on_company() -> None:
    with open_engine(SMALL, options(temperature=1.0)) as engine:
        together = sampled(engine, (0, 1, 2))
        alone = sampled(engine, (1,))
    with open_engine(SMALL, options(temperature=1.0, seed=1)) as engine:
        assert sampled(engine, (1,)) != alone
    assert together[1] == alone[1]
    assert together[0] != together[2]


def test_draws_follow_the_softmax() -> None:
    """Pearson's statistic of 4,000 draws from five scores stays below the 99.9% point of chi-squared(4), 18.5."""
    scores, draws = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5]), 4000
    chosen = torch.tensor([uniform(3, 0, position) for position in range(draws)])
    counts = drawn(scores.expand(draws, 5), chosen, temperature=0.7).bincount(minlength=5)
    expected = (scores.double() / 0.7).softmax(0) * draws
    assert float(((counts - expected) ** 2 / expected).sum()) < 18.5


def test_the_ends_of_a_draw_are_the_first_and_the_last_token() -> None:
    scores = torch.zeros(2, 4)
    assert drawn(scores, torch.tensor([0.0, 1.0]), 1.0).tolist() == [0, 3]


# ---------------------------------------------------------------------- memory


class Peak(TorchDispatchMode):
    """Counts the bytes of tensors alive, from outside: every storage an operation returns, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, Any] = {}
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.untyped_storage()._cdata not in given:
                storage = leaf.untyped_storage()
                self.alive[storage._cdata] = torch.multiprocessing.reductions.StorageWeakRef(storage)
        self.alive = {key: ref for key, ref in self.alive.items() if not ref.expired()}
        sizes = [torch.UntypedStorage._new_with_weak_ptr(ref.cdata) for ref in self.alive.values()]
        self.most = max(self.most, sum(storage.nbytes() for storage in sizes if storage is not None))
        return result


@pytest.mark.parametrize("counts", [(64,), (1, 1, 1, 1), (30, 20, 1)])
@pytest.mark.parametrize("vocabulary", [64, 4096])
def test_a_step_needs_no_more_than_was_planned(counts: tuple[int, ...], vocabulary: int) -> None:
    shape = replace(SMALL, vocabulary=vocabulary)
    with open_engine(shape, options()) as engine:
        for request, count in enumerate(counts):
            engine.begin(request, [1] * count)
        rows = tuple(Row(r, 0, n, list(range(8 * r, 8 * r + 8)), True) for r, n in enumerate(counts))
        meter = Peak()
        compute = engine.decoder.logits

        def metered(*given: Any) -> Tensor:
            with meter:
                return compute(*given)

        engine.decoder.logits = metered  # type: ignore[method-assign]
        engine.collect(engine.launch(Step(rows)))
        planned = step_bytes(shape, "float32", sum(counts), len(counts)) + engine.decoder.attention.workspace_bytes(
            64, 96
        )
        assert planned / 8 < meter.most <= planned


def planned(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "device_bytes": 80 << 30,
        "fraction": 0.9,
        "page_size": 16,
        "pages": None,
        "token_budget": 8192,
        "slots": 256,
        "max_model_len": 8192,
    }
    return given | changes


def test_the_plan_stays_within_the_fraction() -> None:
    plan = plan_memory(SHAPES["llama-3.1-8b"], "bfloat16", **planned(capture_sizes=default_capture_sizes(256)))
    assert plan.limit == int(0.9 * (80 << 30))
    assert plan.limit - plan.page_bytes < plan.planned <= plan.limit
    assert plan.page_bytes == 16 * 131_072
    assert plan.weights > 2 * 8_030_261_248


def test_no_more_pages_than_all_slots_can_use() -> None:
    plan = plan_memory(SHAPES["tiny"], "float32", **planned(slots=4, max_model_len=100))
    assert plan.pages == 4 * 7


def test_weights_that_do_not_fit_are_refused_not_shrunk() -> None:
    with pytest.raises(CannotRun, match=r"model llama-2-7b: 12\.6 GiB of weights .* 0 pages .* of the 12\.0 GiB"):
        plan_memory(SHAPES["llama-2-7b"], "float16", **planned(device_bytes=12 << 30, max_model_len=4096))
    with pytest.raises(CannotRun, match="expected at least 100000"):
        plan_memory(SHAPES["llama-3.1-8b"], "bfloat16", **planned(pages=100_000))


def test_memory_that_runs_out_is_told_and_the_next_step_runs(engine: Executor, right: dict[int, list[int]]) -> None:
    compute = engine.decoder.logits
    engine.decoder.logits = lambda *given: torch.empty(1 << 58)  # type: ignore[method-assign]
    with pytest.raises(OutOfMemory, match="can't allocate memory"):
        run(engine, row(2, 0, 50))
    engine.decoder.logits = compute  # type: ignore[method-assign]
    engine.end(2)
    assert run(engine, row(1, 0, 4)) == right[1][:1]


# ---------------------------------------------------------------------- what there is no engine for


@pytest.mark.parametrize(
    ("model", "changes", "complaint"),
    [
        ("tiny", {"device": "cuda"}, "device cuda: PyTorch finds no CUDA GPU here; expected cpu, or auto"),
        ("tinny", {}, "model tinny: unknown, and no such file; did you mean tiny?"),
        ("tiny", {"memory_fraction": 1e-6}, "model tiny: 78.0 MiB of weights and"),
        ("tiny", {"max_model_len": 8193}, "max_model_len is 8193; expected at most 8192, for tiny"),
        ("tiny", {"attention": "flashinfer"}, "attention flashinfer: flashinfer is not installed; expected torch"),
        ("tiny", {"capture_sizes": (1, 2)}, "attention torch: cannot run padded batches"),
    ],
)
def test_why_there_is_no_engine_is_one_line(model: str, changes: dict[str, Any], complaint: str) -> None:
    if torch.cuda.is_available() and "device" in changes:
        pytest.skip("a GPU is here")
    with pytest.raises(CannotRun) as refusal:
        open_engine(model, options(**changes))
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_engine_that_cannot_be_built_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(CannotRun, match="expected a checkpoint's folder"):
        open_engine(SMALL, options(weights=tmp_path))
    assert threading.active_count() == before


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(CannotRun, match=r"needs PyTorch: pip install 'slotstep\[calibrate\]'"):
        open_engine("tiny", EngineOptions())


def test_kernels_are_not_interpreted_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(CannotRun, match="attention triton: needs a CUDA GPU, or TRITON_INTERPRET=1"):
        open_engine("tiny", options(attention="triton"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"page_size": 0}, "page_size is 0; expected at least 1"),
        ({"page_size": 256}, "page_size is 256; expected at most 128"),
        ({"pages": 0}, "pages is 0"),
        ({"host_pages": -1}, "host_pages is -1"),
        ({"memory_fraction": 1.5}, "memory_fraction is 1.5"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"capture_sizes": (8,)}, "capture_sizes has 8; expected 1 to 4"),
    ],
)
def test_an_option_out_of_its_range_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match="expected") as refusal:
        options(**change)
    assert complaint in str(refusal.value)


def test_a_container_may_have_less_memory_than_its_host(tmp_path: Path) -> None:
    there = host_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    assert host_bytes(tmp_path) == there
    (tmp_path / "memory.max").write_text("1073741824\n")
    assert host_bytes(tmp_path) == 1 << 30
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(f"{1 << 29}\n")
    assert host_bytes(tmp_path) == 1 << 29


def test_warming_up_touches_no_page_of_anybody(engine: Executor, right: dict[int, list[int]]) -> None:
    first = run(engine, row(1, 0, 4))
    before = engine.decoder.cache.data[:, :, :-1].clone()
    engine.stream.do(engine.warm_up)
    assert torch.equal(engine.decoder.cache.data[:, :, :-1].nan_to_num(), before.nan_to_num())
    assert not engine.decoder.cache.data[:, :, -1].isnan().any()
    assert first + run(engine, row(1, 4, 1)) == right[1][:2]


def test_buckets_are_dense_where_batches_are_small() -> None:
    assert default_capture_sizes(1) == (1,)
    assert default_capture_sizes(10) == (1, 2, 4, 8, 10)
    assert default_capture_sizes(400)[-4:] == (256, 320, 384, 400)

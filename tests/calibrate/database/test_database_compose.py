"""Steps of a known formula, composed: the table has to give them back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from calibrate.database.compose import Extent, compose
from calibrate.database.points import sampled
from calibrate.database.profile import with_prompt_factor
from calibrate.profiles.profile import named, profile
from sim.cost.shape import Shape
from sim.cost.table import Table, table

SMALL = Extent(tokens=4096, position=8192, context=200_000)


@dataclass(frozen=True)
class Formula:
    """10 ms of weights, or 5 us a token; a tile more from 1,025 tokens on; attention has a floor and one launch."""

    shares_projections: bool = False
    overlapped_ms: float = 0.0

    def shared(self, tokens: int) -> float:
        return max(10e6, 5e3 * tokens) + (1e6 if tokens > 1024 else 0.0)

    def decode_shared(self, decodes: int) -> float:
        return self.shared(decodes) - self.overlapped_ms * 1e6

    def heads(self, sequences: int) -> float:
        return 1e6 + 1e3 * sequences

    def decode(self, decodes: int, context: int) -> float:
        return max(0.5e6, 20.0 * decodes * context)

    def chunk(self, tokens: int, start: int, prompts: int = 1) -> float:
        return 0.3e6 + prompts * 0.5 * tokens * (start + tokens / 2)

    def whole_decode(self, decodes: int, context: int) -> float:
        return self.decode_shared(decodes) + self.heads(decodes) + self.decode(decodes, context)

    def whole_prefill(self, tokens: int, start: int, prompts: int = 1) -> float:
        return self.shared(tokens * prompts) + self.heads(prompts) + self.chunk(tokens, start, prompts)

    def whole_mixed(self, tokens: int, decodes: int, context: int) -> float | None:
        attention = self.chunk(tokens, 0) + self.decode(decodes, context)
        return self.shared(tokens + decodes) + self.heads(decodes + 1) + attention


def made(of: Formula) -> Table:
    """The table composed of a formula."""
    return table(compose(of, SMALL).content)


def step(decodes: int = 0, context: int = 0, chunks: tuple[tuple[int, int], ...] = ()) -> Shape:
    """A step of decodes with one context each, and of chunks given as (start, tokens)."""
    batch = Shape()
    batch.decodes, batch.context = decodes, decodes * context
    for start, tokens in chunks:
        batch.add_chunk(start, tokens)
    return batch


def test_random_steps_are_within_one_percent_at_the_median_and_three_at_the_99th_percentile() -> None:
    found = compose(Formula(), SMALL).residuals
    for kind in ("decode", "prefill", "mixed"):
        assert found[f"{kind}_median"] < 0.01
        assert found[f"{kind}_p99"] < 0.03


def test_a_jump_at_the_border_of_a_tile_is_kept() -> None:
    points = sampled(Formula().shared, 2048)
    place = points["at"].index(1024)
    assert points["at"][place + 1] == 1025
    assert points["ns"][place : place + 2] == pytest.approx([10e6, 11e6])


def test_a_function_that_falls_is_replaced_by_one_that_does_not() -> None:
    points = sampled(lambda x: 200.0 if x == 3 else 100.0 + x, 64)
    assert all(a <= b for a, b in zip(points["ns"], points["ns"][1:], strict=False))


def test_few_points_stand_for_a_smooth_function() -> None:
    points = sampled(lambda x: 1e6 + x**1.1, 4096)
    assert len(points["at"]) < 30


def test_what_prompts_in_one_step_pay_once_is_found() -> None:
    whole = made(Formula()).step(step(chunks=((0, 512),) * 4))
    assert whole == pytest.approx(Formula().whole_prefill(512, 0, 4), rel=0.005)


def test_a_step_of_decodes_alone_has_its_own_dense_part_where_it_differs() -> None:
    assert made(Formula()).decode_dense is None
    overlapping = Formula(overlapped_ms=2.0)
    assert made(overlapping).step(step(8, 100)) == pytest.approx(overlapping.whole_decode(8, 100), rel=0.005)


def test_decodes_beside_a_chunk_share_its_projections() -> None:
    # Without what a decode costs at the shortest context: 0.5 ms here.
    shared, own = (made(replace(Formula(), shares_projections=each)) for each in (True, False))
    mixed = step(8, 4096, ((0, 512),))
    assert own.step(mixed) - shared.step(mixed) == pytest.approx(0.5e6, rel=0.01)
    assert own.step(step(8, 4096)) == shared.step(step(8, 4096))


def test_only_steps_that_compute_a_prompt_are_scaled() -> None:
    content = {"dense": {"at": [1, 10], "ns": [100.0, 200.0]}, "launch": 0.0}
    content |= {"decode": {"at": [1], "along": [0, 10], "ns": [[5.0, 15.0]]}}
    content |= {"chunk": {"at": [1, 10], "along": [0, 10], "ns": [[10.0, 20.0], [20.0, 40.0]]}}
    about = {**named("h100-llama-3.1-8b").content, "curve": None}
    plain = profile(
        {"table": content}, **{key: value for key, value in about.items() if key not in ("format", "curve")}
    )
    decode, prompt = Shape(), Shape()
    decode.decodes, decode.context = 1, 10
    prompt.add_chunk(0, 10)
    scaled = with_prompt_factor(plain, 1.5).cost()
    assert (scaled.step(decode), scaled.step(prompt)) == (115, 330)
    assert (plain.cost().step(decode), plain.cost().step(prompt)) == (115, 220)


def test_a_factor_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 1"):
        with_prompt_factor(named("h100-llama-3.1-8b"), 0.9)

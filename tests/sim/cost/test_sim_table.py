"""Measured tables and the terms they share with the other costs: by hand, and a run against its steps one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import engine, job, run

from sim.cost.forms import Affine, Curve, Roofline, padded
from sim.cost.shape import Shape
from sim.cost.table import Knots, Lines, Table, table


def shape(decodes: int = 0, context: int = 0, chunks: tuple[tuple[int, int], ...] = (), longest: int = 0) -> Shape:
    """A batch of so many decodes and of chunks given as (start, tokens)."""
    batch = Shape()
    batch.decodes, batch.context, batch.longest = decodes, context, longest
    for start, tokens in chunks:
        batch.add_chunk(start, tokens)
    return batch


DENSE = Knots((1, 4, 8), (100.0, 100.0, 200.0))
DECODE = Lines(Knots((1, 4), (10.0, 22.0)), Knots((1, 4), (1.0, 4.0)))
CHUNK = Lines(Knots((1, 8), (5.0, 19.0)), Knots((1, 8), (1.0, 8.0)))
BESIDE = Lines(Knots((1, 4), (20.0, 44.0)), Knots((1, 4), (2.0, 8.0)))
MEASURED = Table(dense=DENSE, decode=DECODE, chunk=CHUNK, beside=BESIDE, sequences=Knots((1, 4), (3.0, 12.0)))


def test_a_decode_step_is_the_matrix_products_and_the_line_of_its_batch() -> None:
    # At 4 sequences: 100 + 12 for the heads + 22, and 4 for each position of the mean context, 50.
    assert MEASURED.step(shape(decodes=4, context=200)) == 100 + 12 + 22 + 4 * 50
    # Two points make PCHIP a straight line: at 2 sequences 100 + 6 + 14 + 2 x 50.
    assert MEASURED.step(shape(decodes=2, context=100)) == 100 + 6 + 14 + 2 * 50


def test_a_chunk_costs_by_its_size_and_start() -> None:
    assert MEASURED.step(shape(chunks=((30, 8),))) == 200 + 3 + 19 + 8 * 30
    assert MEASURED.step(shape(chunks=((0, 4), (10, 4)))) == 200 + 6 + (11 + 0) + (11 + 4 * 10)


def test_a_mixed_step_shares_the_matrix_products_and_reads_its_context_more_slowly() -> None:
    # 4 decodes and a chunk of 4 are 8 tokens and 5 sequences (3 more a sequence): less than the two steps apart,
    # but for the context, at 8 a position instead of 4.
    mixed = MEASURED.step(shape(decodes=4, context=200, chunks=((0, 4),)))
    assert mixed == 200 + 15 + 44 + 8 * 50 + 11


def test_several_chunks_are_one_launch_and_empty_tiles_cost() -> None:
    cost = Table(dense=DENSE, chunk=CHUNK, launch=4.0, crossing=0.5)
    assert cost.step(shape(chunks=((0, 4), (0, 4)))) == 200 + 11 + 11 - 4
    assert cost.step(shape(decodes=3, chunks=((0, 1), (0, 4)))) == 200 - 4 + 5 + 11 + 0.5 * 3 * 4


def test_beyond_its_end_a_table_goes_on_as_over_its_last_octave() -> None:
    # From 4 to 8 tokens 100: 25 for each token more.
    assert DENSE(12) == 300
    assert DENSE(0) == 100
    # Twice the sequences read twice as much: the rise goes on, 1 a sequence.
    assert DECODE.line(8) == (38.0, 8.0)
    # A chunk of 10: the ninth and tenth token read 8 to 10 positions each, at 1 a position: 19 + 2 x 9.
    assert Table(dense=DENSE, chunk=CHUNK).step(shape(chunks=((100, 10),))) == 250 + 19 + 18 + 10 * 100


def test_values_that_fall_are_raised_to_the_one_before() -> None:
    assert [Knots((1, 2, 3), (5.0, 4.0, 6.0))(x) for x in (1, 2, 3)] == [5, 5, 6]


@st.composite
def knots(draw: st.DrawFn, most: float = 1e6) -> Knots:
    at = sorted(draw(st.sets(st.integers(1, 300), min_size=1, max_size=6)))
    values = draw(st.lists(st.floats(0, most), min_size=len(at), max_size=len(at)))
    return Knots(tuple(at), tuple(values))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    def lines() -> Lines:
        return Lines(draw(knots()), draw(knots(1e4)))

    return Table(
        dense=draw(knots()),
        decode=lines(),
        chunk=lines(),
        beside=draw(st.one_of(st.none(), st.builds(lambda: lines()))),
        sequences=draw(st.one_of(st.none(), knots())),
        host=draw(st.floats(0, 1e5)),
        overlapped_host=draw(st.floats(0, 1e6)),
        raggedness=draw(st.floats(0, 1)),
        graph_sizes=tuple(sorted(draw(st.sets(st.integers(1, 300), max_size=5)))),
        per_tail_token=draw(st.sampled_from([0.0, 3.7])),
        unsplit=draw(st.integers(0, 60)),
        per_page=draw(st.sampled_from([0.0, 2.5])),
    )


def test_a_rise_next_to_nothing_is_none() -> None:
    tiny = 2.2e-309
    assert [Knots((1, 2, 3), (0.0, 0.0, tiny))(x) for x in (1, 2, 3)] == [0, 0, tiny]
    assert Knots((1, 2, 3), (0.0, tiny, 2 * tiny))(2) == tiny


@given(knots())
def test_a_table_never_falls(made: Knots) -> None:
    values = [made(x) for x in range(made.at[-1] + 20)]
    assert values == sorted(values)
    assert made(made.at[-1]) == max(made.y)


@pytest.mark.slow
@given(tables(), st.integers(1, 400), st.integers(0, 3000))
def test_more_context_or_one_more_sequence_of_the_mean_length_is_never_cheaper(
    cost: Table, decodes: int, mean: int
) -> None:
    before = cost.step(shape(decodes, decodes * mean, longest=mean))
    assert cost.step(shape(decodes, decodes * (mean + 1), longest=mean + 1)) >= before
    assert cost.step(shape(decodes + 1, (decodes + 1) * mean, longest=mean)) >= before - 1


EMPTY = Table()
COSTS: dict[str, Curve] = {
    "affine": Affine(base=1e6, per_context_token=3.3, overlapped_host=1.2e6, raggedness=0.03, per_tail_token=2.9),
    "roofline": Roofline(
        weight_pass=1e6,
        per_token=4e4,
        per_context_token=3.3,
        host=1e4,
        raggedness=0.1,
        graph_sizes=(1, 2, 4, 8, 16),
        per_tail_token=2.9,
        unsplit=7,
        prompt_launches=2e6,
        per_mixed_context_token=1.7,
    ),
    "table": Table(dense=DENSE, decode=DECODE, chunk=CHUNK, beside=BESIDE, raggedness=0.2, per_page=0.7),
}


@given(
    st.one_of(st.sampled_from(list(COSTS.values())), tables()),
    st.integers(1, 40),
    st.integers(0, 5000),
    st.integers(0, 500),
    st.integers(1, 300),
)
def test_a_run_of_steps_is_its_steps_one_by_one(cost: Curve, decodes: int, mean: int, more: int, steps: int) -> None:
    growth = [0] + [each % 3 for each in range(steps - 1)]
    first = shape(decodes, decodes * mean, longest=mean + more)
    alone = []
    pages = 0
    for place in range(steps):
        pages += growth[place]
        single = shape(decodes, decodes * (mean + place), longest=mean + more + place)
        single.pages = pages
        alone.append(cost.step(single))
    assert list(cost.run(first, steps, growth)) == alone


def test_the_longer_of_host_and_device_counts() -> None:
    cost = Affine(base=100, host=10, overlapped_host=130)
    assert cost.step(shape()) == 140
    assert cost.step(shape(decodes=1, context=50)) == 140
    assert Affine(base=100, host=10, per_context_token=1, overlapped_host=130).step(shape(1, 50)) == 160
    # While the context grows from 20 to 40, the device overtakes the host at 30.
    run = Affine(base=100, host=10, per_context_token=1, overlapped_host=130).run(shape(1, 20), 20, [0] * 20)
    assert list(run) == [140] * 11 + [141 + j for j in range(9)]


def test_ragged_batches_read_their_context_more_slowly() -> None:
    # Contexts 10, 10 and 40: mean 20, longest 40, so (40 / 20 - 1) x 10% more.
    cost = Affine(per_context_token=100, raggedness=0.1)
    assert cost.step(shape(3, 60, longest=40)) == 6600
    assert cost.step(shape(3, 60, longest=20)) == 6000


def test_the_longest_of_uneven_decodes_is_read_to_its_end_alone() -> None:
    # Four decodes of 50 on average: 22 to launch, 4 a position of the mean. The longest has 90, and one block reads
    # the 40 beyond the mean, 2 each: 80, behind the 22. A longest of 60 is through within what the launch takes.
    cost = replace(MEASURED, per_tail_token=2.0)
    even = 100 + 12 + 4 * 50
    assert cost.step(shape(4, 200, longest=90)) == even + 80
    assert cost.step(shape(4, 200, longest=60)) == even + 22
    assert cost.step(shape(4, 200, longest=50)) == MEASURED.step(shape(4, 200))
    # Beside a chunk (of 4, from 0) the launch takes 44.
    mixed = 200 + 15 + 8 * 50 + 11
    assert cost.step(shape(4, 200, ((0, 4),), longest=90)) == mixed + 80
    assert cost.step(shape(4, 200, ((0, 4),), longest=70)) == mixed + 44


@pytest.mark.parametrize("form", [Affine(), Roofline()])
def test_every_form_can_have_a_longest_that_is_read_alone(form: Curve) -> None:
    # Three decodes of 10, 10 and 40: the longest exceeds the mean by 20, at 5 each. Two share their contexts.
    cost = replace(form, per_context_token=100, per_tail_token=5, unsplit=3)
    assert cost.needs_longest
    assert cost.step(shape(3, 60, longest=40)) == 6000 + 100
    assert cost.step(shape(2, 50, longest=40)) == 5000
    assert cost.step(shape(2, 50, ((0, 1),), longest=40)) == 5000 + 75
    assert list(cost.run(shape(3, 60, longest=40), 3, [0] * 3)) == [6100, 6400, 6700]


@pytest.mark.parametrize("form", [Affine(), Roofline(), EMPTY])
def test_beside_a_chunk_the_context_costs_more(form: Curve) -> None:
    cost = replace(form, per_context_token=100, per_mixed_context_token=50)
    assert cost.step(shape(3, 60)) == 6000
    assert cost.step(shape(3, 60, ((0, 1),))) == 9000


@pytest.mark.parametrize("form", [Affine(), Roofline(), EMPTY])
def test_a_step_that_computes_a_prompt_is_launched_kernel_by_kernel(form: Curve) -> None:
    """The longer of its launches and the device counts, behind the host's own time; a step of decodes has none."""
    cost = replace(form, per_context_token=100, host=10, prompt_launches=7000)
    assert cost.step(shape(3, 60)) == 6010
    assert cost.step(shape(3, 60, ((0, 1),))) == 7010
    assert cost.step(shape(3, 80, ((0, 1),))) == 8010


def test_while_blocks_share_a_context_the_longest_is_no_matter() -> None:
    cost = replace(MEASURED, per_tail_token=2.0, unsplit=5)
    assert cost.step(shape(4, 200, longest=90)) == MEASURED.step(shape(4, 200))
    # A captured batch of eight is padded: the kernel sees as many.
    padded_to_8 = replace(cost, graph_sizes=(8,)).step(shape(4, 200, longest=90))
    assert padded_to_8 == 200 + 12 + 4 * 50 + 80
    # Beside a chunk no context is shared.
    assert cost.step(shape(4, 200, ((0, 4),), longest=90)) == 200 + 15 + 8 * 50 + 11 + 80


@pytest.mark.parametrize("macro", [True, False])
def test_a_run_knows_the_longest_for_a_table_that_asks(macro: bool) -> None:
    cost = Table(
        dense=Knots((1,), (100.0,)), decode=Lines(Knots((1,), (0.0,)), Knots((1,), (0.0,))), per_tail_token=3
    )
    requests = [job("a", 4, prompt=10), job("b", 2, prompt=20)]
    # The prompts; contexts 10 and 20: the longest is 5 above the mean; b ends, and a is the mean.
    assert run(requests, engine(slots=2), cost, macro).step_durations().tolist() == [100, 115, 100, 100]


@pytest.mark.parametrize("macro", [True, False])
def test_the_longest_of_those_that_decode_is_known(macro: bool) -> None:
    cost = Affine(base=100, per_context_token=1, raggedness=1)
    requests = [job("a", 4, prompt=10), job("b", 2, prompt=20), job("c", 3, prompt=5)]
    log = run(requests, engine(slots=3), cost, macro)
    # The prompts; then contexts 10, 20, 5; b ends: 11 and 6; c ends: 12.
    assert log.step_durations().tolist() == [100, 100 + 35 + 25, 100 + 17 + 5, 100 + 12]


def test_a_batch_is_padded_to_the_next_captured_size() -> None:
    assert [padded(tokens, (1, 4, 8)) for tokens in (1, 2, 4, 5, 8, 9)] == [1, 4, 4, 8, 8, 9]
    assert padded(7, ()) == 7
    cost = Roofline(per_token=10, graph_sizes=(4, 8))
    assert [cost.step(shape(decodes=n)) for n in (1, 4, 5, 9)] == [40, 40, 80, 90]
    assert cost.step(shape(decodes=2, chunks=((0, 3),))) == 80


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"dense": {"at": [1, 1], "ns": [1, 2]}}, "dense is .*: at is .* each above the one before"),
        ({"dense": {"at": [1], "ns": [1, 2]}}, "dense is .*: 1 points with 2 values"),
        ({"dense": {"at": [], "ns": []}}, "dense is .*: 0 points"),
        ({"dense": {"at": [1], "ns": [-1]}}, "dense is .*: values are"),
        ({"dense": {"at": [1.5], "ns": [1]}}, "dense is .*: at is"),
        ({"dense": {"at": [1]}}, "dense has no 'ns'"),
        ({"decode": {"at": [1], "ns": [1]}}, "decode has no 'per_position'"),
        ({"dense": 5}, "dense is 5: "),
        ({"graph_sizes": [4, 2]}, "graph_sizes is"),
        ({"unsplit": 2.5}, "unsplit is 2.5; expected a whole number"),
        ({"unsplit": -1}, "unsplit is -1; expected 0 or more"),
        ({"host": -1.0}, "host is -1.0 ns; expected 0 or more"),
    ],
)
def test_wrong_tables_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    point = {"at": [1], "ns": [1], "per_position": [0]}
    with pytest.raises(ValueError, match=complaint):
        table({"dense": point, "decode": point, "chunk": point, **wrong})


def test_a_table_needs_its_parts() -> None:
    with pytest.raises(ValueError, match="dense: missing"):
        table({"host": 5.0})

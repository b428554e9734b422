"""Bent lines: by hand, and a run of steps against its steps one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.cost.knots import Knots
from sim.cost.shape import Shape
from sim.cost.surface import Surface, surface
from sim.cost.table import Table, table

FLAT_THEN_STEEP = Surface((1, 3), (0.0, 100.0, 200.0), ((10.0, 10.0, 110.0), (30.0, 30.0, 330.0)))


def decodes(count: int, context: int) -> Shape:
    """A step of decodes that attend to so many positions together."""
    batch = Shape()
    batch.decodes, batch.context = count, context
    return batch


def test_a_bent_line_is_straight_between_its_positions_and_goes_on_beyond_them() -> None:
    line = FLAT_THEN_STEEP.line(1)
    assert [line(position) for position in (0, 50, 100, 150, 200, 300)] == [10, 10, 10, 60, 110, 210]


def test_between_two_numbers_values_at_each_position_are_interpolated() -> None:
    # Two points make PCHIP a straight line: at 2, half way between the rows.
    assert FLAT_THEN_STEEP.line(2)(150) == (20 + 220) / 2


def test_before_its_first_position_a_bent_line_has_the_value_there() -> None:
    late = Surface((1,), (16.0, 32.0), ((5.0, 9.0),))
    assert late.line(1)(0) == 5
    assert late.line(1).over(np.array([0.0, 24.0])).tolist() == [5, 7]


def test_a_step_takes_the_attention_at_the_mean_context() -> None:
    cost = Table(dense=Knots((1,), (100.0,)), decode=FLAT_THEN_STEEP)
    assert cost.step(decodes(3, 3 * 50)) == 100 + 30
    assert cost.step(decodes(3, 3 * 150)) == 100 + 180


def test_a_chunk_takes_the_attention_at_its_start() -> None:
    cost = Table(chunk=FLAT_THEN_STEEP, launch=4.0)
    batch = Shape()
    batch.add_chunk(0, 1)
    batch.add_chunk(150, 3)
    assert cost.step(batch) == 10 + 180 - 4


def test_raggedness_adds_positions_to_the_mean_context() -> None:
    cost = Table(decode=FLAT_THEN_STEEP, raggedness=0.5)
    batch = decodes(1, 100)
    batch.longest = 200
    assert cost.step(batch) == 60


def test_a_step_of_decodes_alone_has_its_own_dense_part() -> None:
    cost = Table(dense=Knots((1,), (100.0,)), decode_dense=Knots((1,), (70.0,)))
    mixed = decodes(1, 10)
    mixed.add_chunk(0, 5)
    assert (cost.step(decodes(1, 10)), cost.step(mixed)) == (70, 100)


@st.composite
def surfaces(draw: st.DrawFn) -> Surface:
    at = sorted(draw(st.sets(st.integers(1, 40), min_size=1, max_size=5)))
    along = sorted(draw(st.sets(st.integers(0, 5000), min_size=2, max_size=6)))
    value = st.floats(0, 1e6, allow_nan=False)
    rows = tuple(tuple(draw(value) for _ in along) for _ in at)
    return Surface(tuple(at), tuple(map(float, along)), rows)


@pytest.mark.property
@given(of=surfaces(), count=st.integers(1, 50), steps=st.integers(1, 40), data=st.data())
def test_a_run_of_steps_is_its_steps_one_by_one(of: Surface, count: int, steps: int, data: st.DataObject) -> None:
    ragged, pages = data.draw(st.sampled_from((0.0, 0.3))), data.draw(st.sampled_from((0.0, 2.0)))
    cost = Table(decode=of, per_context_token=0.25, raggedness=ragged, per_page=pages, host=7.0)
    first = decodes(count, data.draw(st.integers(0, 10**5)))
    first.longest, first.pages = first.context // count + data.draw(st.integers(0, 99)), 3
    growth = [0] * steps
    one_by_one = []
    for step in range(steps):
        each = decodes(count, first.context + step * count)
        each.longest, each.pages = first.longest + step, 3
        one_by_one.append(cost.step(each))
    assert cost.run(first, steps, growth).tolist() == one_by_one


@pytest.mark.property
@given(of=surfaces(), x=st.integers(0, 60), positions=st.lists(st.floats(0, 1e5, allow_nan=False), min_size=1))
def test_one_position_and_many_have_the_same_values(of: Surface, x: int, positions: list[float]) -> None:
    assert of.line(x).over(np.array(positions)).tolist() == [of.line(x)(position) for position in positions]


@pytest.mark.property
@given(of=surfaces(), x=st.integers(0, 60), position=st.floats(0, 5000, allow_nan=False))
def test_one_more_sequence_never_makes_attention_cheaper(of: Surface, x: int, position: float) -> None:
    inside = min(position, of.along[-1])
    assert of.line(x + 1)(inside) >= of.line(x)(inside) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"along": [5]}, "along is"),
        ({"along": [5, 5]}, "along is"),
        ({"ns": [[1.0, 2.0]]}, "expected 2 rows of 2 values"),
        ({"at": [3, 1]}, "at is"),
    ],
)
def test_points_that_are_no_surface_are_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        surface({"at": [1, 3], "along": [0, 10], "ns": [[1.0, 2.0], [3.0, 4.0]], **changed})


def test_a_table_reads_a_surface_by_its_along() -> None:
    content = {"dense": {"at": [1], "ns": [5.0]}, "chunk": {"at": [1], "ns": [0.0], "per_position": [0.0]}}
    made = table({**content, "decode": {"at": [1], "along": [0, 10], "ns": [[1.0, 11.0]]}})
    assert made.step(decodes(1, 4)) == 5 + 5

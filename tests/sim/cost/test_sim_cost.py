"""What a step costs: by hand, and a run of steps against its steps one by one."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.cost.forms import Affine, Roofline, Unit
from sim.cost.shape import Shape


def shape(decodes=0, context=0, chunks=(), pages=0, copied=0):
    """A batch of so many decodes and of chunks given as (start, tokens)."""
    batch = Shape()
    batch.decodes, batch.context, batch.pages, batch.copied = decodes, context, pages, copied
    for start, tokens in chunks:
        batch.add_chunk(start, tokens)
    return batch


def test_a_unit_step_lasts_the_same_whatever_it_does():
    assert Unit(7).step(shape()) == 7
    assert Unit(7).step(shape(decodes=9, context=10**6, chunks=[(0, 99)])) == 7
    assert list(Unit(7).run(shape(decodes=2), 3, [0, 0, 0])) == [7, 7, 7]


def test_an_affine_step_is_the_sum_of_its_parts():
    cost = Affine(
        base=1000,
        host=200,
        per_sequence=10,
        per_context_token=2,
        per_prefill_token=5,
        per_chunk_work=0.5,
        per_page=3,
        per_copied_token=4,
    )
    assert cost.step(shape()) == 1200
    # 3 decodes x 10 + 40 cached positions x 2 + 4 pages x 3
    assert cost.step(shape(decodes=3, context=40, pages=4)) == 1200 + 30 + 80 + 12
    # 10 prompt tokens x 5, and pairs of attention: 4 x (8 + 2) + 6 x (0 + 3) = 58, x 0.5; 7 copies x 4
    assert cost.step(shape(chunks=[(8, 4), (0, 6)], copied=7)) == 1200 + 50 + 29 + 28


def test_a_roofline_step_shares_one_pass_over_the_weights():
    cost = Roofline(
        weight_pass=4000,
        per_token=1000,
        per_context_token=2,
        per_chunk_work=0.5,
        per_sequence=10,
        per_page=3,
        per_copied_token=4,
        host=500,
    )
    # Nothing to multiply: the weights alone. 3 tokens: (4000^4 + 3000^4)^(1/4) = 1000 x 337^(1/4) = 4284.6...
    assert cost.step(shape()) == 4500
    assert cost.step(shape(decodes=3)) == round(500 + 1000 * 337**0.25 + 30)
    # 2 decodes and a chunk of 4 after 8 are 6 tokens and 3 sequences.
    batch = shape(decodes=2, context=50, chunks=[(8, 4)], pages=5, copied=7)
    matrices = 1000 * sqrt(sqrt(4**4 + 6**4))
    assert cost.step(batch) == round(500 + matrices + 2 * 50 + 0.5 * 40 + 10 * 3 + 3 * 5 + 4 * 7)


def test_a_step_lasts_at_least_a_nanosecond():
    assert Affine().step(shape()) == 1
    assert list(Affine().run(shape(decodes=1), 100, [0] * 100)) == [1] * 100


def test_halves_round_to_even():
    assert Affine(base=2.5).step(shape()) == 2
    assert Affine(base=3.5).step(shape()) == 4
    assert list(Affine(base=0.5, per_context_token=1).run(shape(decodes=1, context=2), 3, [0] * 3)) == [2, 4, 4]


def test_the_context_grows_along_a_run():
    # 3 sequences: the context grows by 3 a step; two pages come with the second step.
    cost = Affine(base=100, per_context_token=1, per_page=10)
    assert list(cost.run(shape(decodes=3, context=30, pages=6), 3, [0, 2, 0])) == [190, 213, 216]


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [Affine, Roofline])
@pytest.mark.parametrize("name", ["per_context_token", "per_chunk_work", "per_sequence", "per_page", "host"])
def test_impossible_coefficients_are_refused(kind, name, bad):
    with pytest.raises(ValueError, match=f"{name} is {bad} ns; expected 0 or more"):
        kind(**{name: bad})


def test_impossible_coefficients_of_one_form_are_refused():
    for make, complaint in (
        (lambda: Unit(0), "unit is 0 ns; expected at least 1 ns"),
        (lambda: Affine(base=-1), "base is -1 ns"),
        (lambda: Affine(per_prefill_token=-1), "per_prefill_token is -1 ns"),
        (lambda: Roofline(weight_pass=-1), "weight_pass is -1 ns"),
        (lambda: Roofline(per_token=-1), "per_token is -1 ns"),
        (lambda: Roofline(per_copied_token=-1), "per_copied_token is -1 ns"),
    ):
        with pytest.raises(ValueError, match=complaint):
            make()


coefficients = st.floats(0, 1e4) | st.floats(0, 1e9) | st.sampled_from([0.0, 0.5, 1.0])
SHARED = ("per_context_token", "per_chunk_work", "per_sequence", "per_page", "per_copied_token", "host")
shared = dict.fromkeys(SHARED, coefficients)
costs = st.one_of(
    st.builds(Unit, st.integers(1, 10**9)),
    st.builds(Affine, base=coefficients, per_prefill_token=coefficients, **shared),
    st.builds(Roofline, weight_pass=coefficients, per_token=coefficients, **shared),
)
shapes = st.builds(
    shape,
    decodes=st.integers(1, 300),
    context=st.integers(0, 10**7),
    pages=st.integers(0, 10**5),
)


@given(costs, shapes, st.data())
def test_a_run_equals_its_steps_to_the_nanosecond(cost, first, data):
    growth = data.draw(st.lists(st.integers(0, first.decodes), min_size=1, max_size=60))
    single = []
    decodes, context, pages = first.decodes, first.context, first.pages
    for step, pages_more in enumerate(growth):
        pages += pages_more if step else 0
        single.append(cost.step(shape(decodes, context + step * decodes, pages=pages)))
    assert list(cost.run(first, len(growth), growth)) == single

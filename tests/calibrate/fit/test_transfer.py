"""A roofline as bandwidths and rates, and at another model's shape."""

from __future__ import annotations

import pytest

from calibrate.fit.rescale import attained, carried
from calibrate.hardware.devices import DEVICES
from calibrate.models.architecture import Architecture
from calibrate.models.registry import architecture
from sim.cost.forms import Roofline

SMALL = Architecture(
    "small", layers=2, hidden=64, intermediate=128, heads=4, kv_heads=2, head_size=16, vocabulary=100
)
LARGE = Architecture(
    "large", layers=4, hidden=64, intermediate=128, heads=4, kv_heads=4, head_size=16, vocabulary=100
)
COST = Roofline(
    weight_pass=1e6,
    per_token=1e3,
    per_context_token=10.0,
    per_chunk_work=1.0,
    host=5e5,
    per_sequence=7.0,
    per_swapped_token=3.0,
    graph_sizes=(1, 2, 4),
)


def test_what_is_counted_per_byte_and_per_operation_carries_and_the_host_does_not() -> None:
    found = carried(COST, SMALL, LARGE)
    # small: a layer has attention 64 x 16 x 2 x (4 + 2) = 12,288 and 3 x 64 x 128 = 24,576: 36,864; two are 73,728
    # large: attention 64 x 16 x 2 x (4 + 4) = 16,384, a layer 40,960; four are 163,840. The head: 6,400 in both
    assert found.weight_pass == pytest.approx(1e6 * (163_840 + 6_400) / (73_728 + 6_400), rel=1e-5)
    assert found.per_token == pytest.approx(1e3 * 163_840 / 73_728, rel=1e-5)
    assert found.per_context_token == pytest.approx(10.0 * (4 * 4) / (2 * 2))
    assert found.per_chunk_work == pytest.approx(2.0)
    assert found.per_swapped_token == pytest.approx(3.0 * 4)
    assert (found.host, found.per_sequence, found.graph_sizes) == (5e5, 7.0, (1, 2, 4))


def test_there_and_back_is_where_it_began() -> None:
    back = carried(carried(COST, SMALL, LARGE), LARGE, SMALL)
    assert back.weight_pass == pytest.approx(COST.weight_pass, rel=1e-5)
    assert back.per_context_token == pytest.approx(COST.per_context_token)


def test_bandwidths_and_rates_are_bytes_and_operations_over_time() -> None:
    found = {each.term: each for each in attained(COST, SMALL, DEVICES["h100-sxm"])}
    assert found["weight_pass"].value == pytest.approx(2 * (73_728 + 6_400) / 1e-3)
    assert found["per_token"].value == pytest.approx(2 * 73_728 / 1e-6)
    assert found["per_context_token"].value == pytest.approx(2 * 2 * 2 * 2 * 16 / 10e-9)
    assert found["per_chunk_work"].value == pytest.approx(4 * 2 * 4 * 16 / 1e-9)
    assert found["weight_pass"].sheet == DEVICES["h100-sxm"].bandwidth
    assert attained(Roofline(host=1.0), SMALL, None) == []


def test_a_cache_of_16_bits_is_read_and_multiplied_as_one_under_weights_of_8() -> None:
    sheet = DEVICES["h100-sxm"]
    wide, narrow = ({each.term: each for each in attained(COST, SMALL, sheet, kind)} for kind in ("bfloat16", "fp8"))
    assert narrow["weight_pass"].value == wide["weight_pass"].value / 2
    assert narrow["per_token"].sheet == sheet.rate8
    for term in ("per_context_token", "per_chunk_work"):
        assert narrow[term] == wide[term]


def test_a_mixture_does_not_carry() -> None:
    with pytest.raises(ValueError, match="mixtral-8x7b has experts or a window; expected a dense model"):
        carried(COST, SMALL, architecture("mixtral-8x7b"))

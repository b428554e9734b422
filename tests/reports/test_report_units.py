"""Numbers as people read them."""

import pytest

from reports.units import apportion, duration, percent, printable, significant, unit_of


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (0.0, "0 s"),
        (0.41, "410 ms"),
        (1.2, "1.20 s"),
        (0.99951, "1.00 s"),
        (0.012345, "12.3 ms"),
        (4e-5, "40.0 us"),
        (3541.2, "3,541 s"),
        (36_000, "10.0 h"),
    ],
)
def test_a_duration_comes_in_the_unit_that_fits(seconds: float | None, shown: str):
    assert duration(seconds) == shown


def test_three_digits_are_kept_below_a_hundred_and_all_whole_ones_above():
    shown = [significant(value) for value in (0.0412, 1.2, 35.71, 99.96, 1234.4, 0)]
    assert shown == ["0.0412", "1.20", "35.7", "100", "1,234", "0"]


def test_a_share_is_a_percentage_with_one_decimal():
    assert [percent(172 / 960), percent(1), percent(None)] == ["17.9%", "100.0%", "-"]


def test_several_times_share_the_unit_of_the_largest():
    assert unit_of([0.005, 0.41]) == (1e-3, "ms")
    assert unit_of([]) == (1.0, "s")


def test_parts_add_up_and_the_largest_remainders_get_the_rest():
    assert apportion([1, 1, 1], 100) == [34, 33, 33]
    assert apportion([172, 788], 10) == [2, 8]
    assert apportion([0, 0], 10) == [0, 0]


def test_a_name_cannot_move_the_cursor():
    assert printable("a\x1b[31m\nb") == "a\\x1b[31m\\nb"
    assert printable("[red]x ä") == "[red]x ä"

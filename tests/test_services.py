"""The comparison of services with published measurements: its parts by hand, its claims on the tables."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.services import disaggregation


def test_answers_that_end_at_any_token_have_the_mean_of_the_row():
    drawn = disaggregation.outputs(60, 128, 20_000)
    assert sum(drawn) / len(drawn) == pytest.approx(60, rel=0.02)
    assert (min(drawn), max(drawn)) == (1, 128)


def test_a_decode_step_is_read_off_rows_whose_workers_run_known_numbers_of_sequences():
    # Steps of 8 ms + 0.1 ms a sequence: 10 and 50 sequences on each of two workers give 9 and 13 ms, and
    # 2 x 10 / 9 ms and 2 x 50 / 13 ms tokens a second.
    rows = pd.DataFrame({"itl_mean_ms": [9.0, 13.0], "output_tok_s": [20 / 9e-3, 100 / 13e-3], "decode": [2, 2]})
    assert disaggregation.decode_step(rows) == pytest.approx((8.0, 0.1))


def test_a_root_is_found_by_halves():
    assert disaggregation.root(lambda x: x - 3, 0, 8, rounds=20) == pytest.approx(3, abs=1e-4)


@pytest.mark.slow
def test_one_cost_gives_the_tpot_of_the_other_ratios(data):
    table = data / "services" / disaggregation.FILE
    if not table.is_file():
        pytest.skip(f"no {table}")
    _, records = disaggregation.compared(pd.read_csv(table))
    errors = [abs(row["simulated"]["tpot_mean_ms"] / row["tpot_mean_ms"] - 1) for row in records]
    assert sum(error <= 0.15 for error in errors) >= 17
    assert max(errors) < 0.2
    assert sum(measured == simulated for *_, measured, simulated in disaggregation.best(records)) >= 5

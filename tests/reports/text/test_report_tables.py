"""One run as text: the numbers are there, none is cut, and names from data are taken literally."""

import io

import pytest
from report_examples import a_run, account, counts, latency, tenant
from rich.console import Console, RenderableType

from reports.text.ledger_bar import ledger_bar
from reports.text.run_summary import summary_table


def printed(what: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, record=True, force_terminal=True)
    console.print(what)
    return console.export_text()


def line(text: str, start: str) -> str:
    """The line that starts like this, without the start, its words one space apart."""
    (found,) = (row.strip() for row in text.splitlines() if row.strip().startswith(start))
    return " ".join(found.removeprefix(start).split())


def busy_run() -> dict:
    """A day of a large trace: every number as long as it gets."""
    many = 4_068_000
    return a_run(
        makespan_s=35_412.3,
        requests=counts(19_366, rejected=60, waiting=6),
        rejections={"needs more pages than exist": 60},
        slot_steps=account(decode=115_390_000, prefill=5_000_000, no_demand=106_246_800),
        slot_seconds=account(decode=115_390.5, prefill=5_000.25, idle=100.0),
        itl_s=latency(0.0251, 1.23, many),
        e2e_s=latency(6.41, 102.4, many),
        attainment=0.881,
        goodput_per_s=4.87,
        tenants={"[red]x": tenant(19_000, 0.4321), "b": tenant(366, 12.345)},
    )


def test_the_eight_outputs_read_as_the_hand_calculation_says():
    text = printed(summary_table(a_run()), width=100)
    assert "eight, fcfs   seed 7, log 0123456789ab\n" in text.replace(" \n", "\n")
    assert "8 injected: 8 finished" in text
    assert "120 ms in 120 steps" in text
    assert "17.9%: 172 useful of 960 slot-steps" in text
    assert "15.0 used on average, 15 at the peak, of 64; 50.0% of held positions live" in text
    assert line(text, "E2E") == "8 21.5 ms 21.5 ms 21.5 ms 21.5 ms 120 ms 120 ms"
    assert line(text, "preemptions") == "0"
    assert "objectives" not in text
    assert "tenant" not in text


def test_every_end_that_some_request_came_to_is_named():
    run = a_run(
        requests=counts(10, rejected=3, timed_out=2, cancelled=1),
        rejections={"needs more pages than exist": 2, "prompt exceeds the token budget": 1},
    )
    text = printed(summary_table(run), width=160)
    assert (
        "10 injected: 4 finished, 3 rejected (2 needs more pages than exist; 1 prompt exceeds the token budget), "
        "2 timed out, 1 cancelled"
    ) in text


def test_a_latency_nobody_has_is_a_dash_with_its_sample_size():
    text = printed(summary_table(a_run(tpot_s=latency(None))))
    assert line(text, "TPOT") == "0 - - - - - -"


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_number_is_cut(width: int):
    text = printed(summary_table(busy_run()), width)
    assert "…" not in text
    assert line(text, "ITL").startswith("4,068,000 25.1 ms")
    assert line(text, "[red]x") == "19,000 19,000 432 ms 432 ms 432 ms 432 ms 432 ms 432 ms"
    assert "met by 88.1% of the requests injected; goodput 4.87/s" in text


def test_tenants_beyond_the_twenty_largest_are_counted():
    tenants = {f"t{i}": tenant(1 + i, 0.1) for i in range(23)}
    text = printed(summary_table(a_run(tenants=tenants)))
    assert "3 more tenants" in text
    assert line(text, "t22 ").startswith("23 23 ")
    assert "t2 " not in text


def test_a_run_of_nothing_prints_dashes():
    nothing = a_run(
        occupancy=None,
        slot_steps=account(decode=0, prefill=0),
        slot_seconds=account(decode=0, prefill=0, idle=0),
        rates=dict.fromkeys(a_run()["rates"]),
        tokens_per_slot_step=None,
    )
    assert "-: 0 useful of 0 slot-steps" in printed(summary_table(nothing))
    assert "No slot-steps were bought." in printed(ledger_bar(nothing))


def test_the_bar_has_a_cell_for_every_hundredth_and_the_legend_the_exact_counts():
    text = printed(ledger_bar(a_run()), width=100)
    (bar,) = (row for row in text.splitlines() if row.startswith("█" * 5))
    assert bar == "█" * 17 + "▓" + "░" * 82
    assert line(text, "██  decode").startswith("164 17.1% ")
    assert line(text, "▓▓  prefill").startswith("8 0.8% ")
    assert line(text, "░░  held").startswith("788 82.1% ")
    assert line(text, "none:") == "recomputed, wasted, no_budget, no_memory, blocked, limited, no_demand"


def test_shares_in_the_legend_add_up_to_a_hundred():
    text = printed(ledger_bar(a_run(slot_steps=account(decode=1, held=1, no_demand=1))), width=100)
    shares = [float(word.rstrip("%")) for word in text.split() if word.endswith("%")]
    assert sorted(shares) == [33.3, 33.3, 33.4]


def test_a_row_too_small_for_the_bar_is_still_in_the_legend():
    text = printed(ledger_bar(a_run(slot_steps=account(decode=999_999, blocked=1))), width=100)
    assert line(text, "kk  blocked").startswith("1 <0.1% ")
    assert "█" * 100 in text


def test_a_console_without_unicode_gets_letters():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=file, width=100).print(ledger_bar(a_run()))
    file.seek(0)
    assert "#" * 17 + "=" + "h" * 82 in file.read()


def test_a_ledger_that_does_not_add_up_is_not_drawn():
    with pytest.raises(ValueError, match="add up to 172, but 960 were bought"):
        ledger_bar(a_run(slot_steps=account(decode=172) | {"bought": 960}))


def test_a_row_without_a_look_is_not_passed_over():
    with pytest.raises(ValueError, match="'sleeping' is unknown"):
        ledger_bar(a_run(slot_steps=account(decode=172, sleeping=1)))


def test_the_share_that_has_no_latency_is_said_beside_it():
    assert line(printed(summary_table(a_run())), "censored") == "none; latencies are of the n that have them"
    cut = latency(0.5, n=6) | {"censored_share": 0.25}
    text = printed(summary_table(a_run(ttft_s=cut, e2e_s=cut)))
    shown = line(text, "censored")
    assert shown.startswith("0.0% (wait, TPOT, ITL, largest gap), 25.0% (TTFT, E2E)")

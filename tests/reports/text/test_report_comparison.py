"""Several runs side by side: who wins, by how much, and what the numbers leave out."""

import io

import pytest
from report_examples import a_run, counts, latency, tenant
from rich.console import Console

from reports.text.comparison import comparison_markdown, comparison_table


def printed(runs: list[dict], width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, record=True, force_terminal=True)
    console.print(comparison_table(runs))
    return console.export_text()


def rows(text: str, policy: str) -> list[list[str]]:
    """The cells of a policy's row in each table."""
    starts = (row.split() for row in text.splitlines() if row.startswith(f" {policy} "))
    return [cells[1:] for cells in starts]


def said(text: str) -> str:
    return " ".join(text.split())


FCFS = a_run("fcfs", ttft_s=latency(0.66, 1.0), e2e_s=latency(3.0, 8.0), preemptions=10)
SJF = a_run("sjf", ttft_s=latency(0.41, 2.3), e2e_s=latency(3.0, 8.0), preemptions=10)


def test_the_winner_is_said_in_words_and_the_price_of_it():
    text = said(printed([FCFS, SJF]))
    assert "sjf has the lowest mean TTFT: 410 ms, 38% below fcfs's; its p99 is 2.3x fcfs's." in text
    assert "fcfs has the lowest p99 TTFT: 1.00 s (next: sjf, 2.30 s)." in text


def test_the_best_of_a_column_has_a_star_and_equal_columns_have_none():
    text = printed([FCFS, SJF])
    engine, latencies = rows(text, "sjf")
    assert engine == ["17.9%", "120", "1,433", "10", "0"]
    assert latencies == ["0", "0", "0.410*", "2.30", "1.00", "1.00", "3.00", "8.00"]
    assert rows(text, "fcfs")[1][2:4] == ["0.660", "1.00*"]
    assert "Equal for all: occupancy, makespan, output rate, preemptions, maximum wait, mean wait" in said(text)


def test_the_best_is_bold():
    console = Console(file=io.StringIO(), width=100, record=True, force_terminal=True)
    console.print(comparison_table([FCFS, SJF]))
    assert "\x1b[1m0.410*\x1b[0m" in console.export_text(styles=True)


def test_ties_are_all_marked():
    twin = a_run("twin", ttft_s=latency(0.41, 2.3), e2e_s=latency(3.0, 8.0), preemptions=10)
    text = printed([FCFS, SJF, twin])
    assert rows(text, "sjf")[1][2] == rows(text, "twin")[1][2] == "0.410*"
    assert "sjf and twin have the lowest mean TTFT: 410 ms, 38% below fcfs's." in said(text)


def test_a_difference_that_cannot_be_seen_wins_nothing():
    close = a_run("close", ttft_s=latency(0.6600001, 1.0), e2e_s=latency(3.0, 8.0), preemptions=10)
    text = printed([FCFS, close])
    assert "*" not in text
    assert "mean TTFT, p99 TTFT" in said(text)


def test_a_winner_of_both_is_said_once():
    better = a_run("better", ttft_s=latency(0.33, 0.05), e2e_s=latency(3.0, 8.0), preemptions=10)
    assert (
        "better has the lowest mean TTFT: 330 ms, 50% below fcfs's; "
        "its p99 is the lowest too: 50.0 ms, 1/20 of fcfs's."
    ) in said(printed([FCFS, better]))


def test_higher_is_better_where_it_is():
    full = a_run("full", occupancy=0.9, attainment=0.75, makespan_s=0.24)
    text = said(printed([a_run(occupancy=0.5, attainment=1.0), full]))
    assert "full has the highest occupancy: 90.0%, 40.0 points above fcfs's." in text
    assert "fcfs has the highest attainment: 100.0% (next: full, 75.0%)." in text
    assert "fcfs has the shortest makespan: 120 ms (next: full, 240 ms)." in text


def test_against_nothing_there_is_no_ratio():
    waits = a_run("waits", wait_s=latency(0.5))
    never = a_run("never", wait_s=latency(None))
    text = said(printed([never, waits, a_run()]))
    assert "fcfs has the lowest mean wait: 0 s, where never has none" in text


def test_who_starves_is_seen_and_said():
    fcfs, sjf = a_run(wait_s=latency(18.0, 77.4)), a_run("sjf", wait_s=latency(12.0, 737.0))
    text = printed([fcfs, sjf])
    assert [rows(text, policy)[0][-1] for policy in ("fcfs", "sjf")] == ["77.4*", "737"]
    assert "fcfs has the lowest maximum wait: 77.4 s (next: sjf, 737 s)." in said(text)


def test_what_a_policy_knew_of_the_future_is_said():
    runs = [FCFS, SJF | {"predictor": "exact"}, a_run("guess", predictor="lognormal error 0.5")]
    text = said(printed([*runs, a_run("fair", predictor="exact")]))
    assert "sjf and fair: predictor exact, which sees the true output lengths, as no engine can." in text
    assert "guess: predictor lognormal error 0.5." in text
    assert "predictor" not in printed([FCFS])


def test_latencies_of_survivors_are_called_that():
    cut = {
        "requests": counts(100, rejected=8, waiting=4),
        "rejections": {"needs more pages than exist": 8},
        "wait_s": latency(0.0, n=88) | {"censored_share": 0.12},
        "ttft_s": latency(0.001, n=88) | {"censored_share": 0.12},
        "tpot_s": latency(0.001, n=80) | {"censored_share": 0.12},
        "e2e_s": latency(0.02, n=88) | {"censored_share": 0.12},
    }
    text = said(printed([a_run("fcfs", **cut), a_run("sjf", **cut), a_run("fair", requests=counts(8))]))
    assert (
        "fcfs and sjf: 12 of 100 requests (12.0%) did not finish: "
        "8 rejected (needs more pages than exist), 4 waiting. Latencies cover only requests that got that far: "
        "n = 88 (wait, TTFT, E2E), 80 (TPOT); censored: 12.0% (wait, TTFT, TPOT, E2E)."
    ) in text
    assert "Latencies of fair: n = 8; none censored." in text
    assert "fair: 0" not in text


def test_runs_of_different_requests_are_not_passed_off_as_comparable():
    text = said(printed([a_run("static"), a_run("continuous", requests=counts(48))]))
    assert "did not get the same requests (static 8, continuous 48)" in text


def test_the_worst_off_tenant_is_named_literally_and_one_without_a_token_is_the_worst():
    fcfs = a_run("fcfs", tenants={"[red]x": tenant(4, 4.0), "b": tenant(4, 1.0)})
    fair = a_run("fair", tenants={"[red]x": tenant(4, 2.0), "b": tenant(4, 1.0)})
    starves = a_run("starves", tenants={"[red]x": tenant(4, 0.1), "b": tenant(4, None)})
    text = printed([fcfs, fair, starves])
    assert [rows(text, policy)[0][-2:] for policy in ("fcfs", "fair", "starves")] == [
        ["4.00", "[red]x"],
        ["2.00*", "[red]x"],
        ["never", "b"],
    ]
    assert "fair has the lowest p99 TTFT of the worst-off tenant: 2.00 s, 50% below fcfs's." in said(text)


def test_one_run_wins_nothing():
    text = printed([a_run()])
    assert "*" not in text
    assert "has the" not in text


def test_no_runs_are_an_error():
    with pytest.raises(ValueError, match="no runs"):
        comparison_table([])


def test_the_same_policy_twice_is_told_apart_by_its_scenario_or_its_place():
    static, continuous = a_run(scenario="static"), a_run(scenario="continuous")
    assert "fcfs, continuous" in printed([static, continuous])
    assert "fcfs (2)" in printed([static, static])


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_number_is_cut(width: int):
    wide = {"attainment": 0.5, "preemptions": 1_234_567, "tenants": {"a": tenant(1, 3541.0), "b": tenant(1, 2.0)}}
    runs = [a_run("fcfs", **wide), a_run("fair", **wide | {"e2e_s": latency(3541.0, 35_412.0)})]
    text = printed(runs, width)
    assert "…" not in text
    assert rows(text, "fair")[0] == ["17.9%", "120", "1,433", "1,234,567", "50.0%", "0", "3,541", "a"]
    assert rows(text, "fair")[1][-2:] == ["3,541", "35,412"]


def test_markdown_says_the_same_with_bold_winners():
    text = comparison_markdown([FCFS, SJF])
    assert "| policy | occupancy | makespan, ms | output rate, tok/s | preemptions | maximum wait, s |\n" in text
    assert "| sjf | 0 | 0 | **0.410** | 2.30 | 1.00 | 1.00 | 3.00 | 8.00 |\n" in text
    assert "- sjf has the lowest mean TTFT: 410 ms, 38% below fcfs's; its p99 is 2.3x fcfs's.\n" in text
    for table in text.split("\n\n")[:2]:
        assert len({row.count("|") for row in table.splitlines()}) == 1


def test_markdown_takes_names_literally():
    text = comparison_markdown([a_run("a|b"), a_run("<b>*x*")])
    assert "| a\\|b | 17.9%" in text
    assert "| \\<b\\>\\*x\\* |" in text

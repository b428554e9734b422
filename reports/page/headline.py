"""The top of a report: sentences on the use of the slots, cards with the main metrics, and caveats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reports import ledger_rows
from reports.page.report import Run
from reports.text import headroom
from reports.text.comparison_sentences import sentences
from reports.text.metric_comparison import MetricComparison, compare, declared, written
from reports.units import ABSENT, duration, percent, significant

CARDS = ("occupancy", "rates.output_tokens_per_s", "attainment", "ttft_s.p99", "e2e_s.p99", "wait_s.max")
"""The metrics that have a card, by their path in the summary."""


@dataclass(frozen=True)
class Card:
    """A metric: its name, its value, and the text beneath."""

    name: str
    value: str
    beside: str


def cards(runs: Sequence[Run]) -> list[Card]:
    """A card per metric of CARDS that a run has: the value of a single run, or the best, its run, and the others."""
    summaries = [run.summary for run in runs]
    compared = [
        comparison
        for metric in CARDS
        for comparison in compare([declared(())[metric]], summaries)
        if set(comparison.cells) != {ABSENT}
    ]
    return [
        Card(comparison.metric.subject, *_value_and_rest(comparison, [run.name for run in runs]))
        for comparison in compared
    ]


def _value_and_rest(comparison: MetricComparison, names: Sequence[str]) -> tuple[str, str]:
    metric, values = comparison.metric, comparison.values
    texts = [written(metric, value) for value in values]
    if len(names) == 1:
        return texts[0], ""
    if not comparison.best:
        return texts[0], "equal for all" if comparison.all_equal else ""
    place = min(comparison.best)
    rest = ", ".join(f"{name} {texts[i]}" for i, name in enumerate(names) if i not in comparison.best)
    return texts[place], f"best: {', '.join(names[i] for i in sorted(comparison.best))}; {rest}"


def answers(runs: Sequence[Run]) -> tuple[list[str], list[str]]:
    """Headroom and use of the slots of each run; and the comparison of runs, or the throughput of a single one."""
    found = [sentence for of in (_headroom, _slots) for sentence in _of_each(runs, of)]
    if len(runs) == 1:
        return found, [_throughput(runs[0])]
    caveats = {sentence.partition(": ")[2] for run in runs for sentence in sentences([run.summary])}
    whole = sentences([run.summary for run in runs])
    return found, [sentence for sentence in whole if sentence.partition(": ")[2] not in caveats]


def _of_each(runs: Sequence[Run], of: Callable[[Run], str]) -> list[str]:
    """A sentence of each run that has one, with its name if there are several; one for all if they say the same."""
    found = {run.name: of(run) for run in runs}
    if len(runs) > 1 and len(set(found.values())) == 1:
        found = {"All runs": found[runs[0].name]}
    return [f"{name}: {text}" if len(runs) > 1 else text for name, text in found.items() if text]


def _headroom(run: Run) -> str:
    found = headroom.sentence(run.summary)
    return f"{found[0].upper()}{found[1:]}." if found else ""


def _slots(run: Run) -> str:
    account = run.summary["slot_steps"]
    bought = account["bought"]
    if not bought:
        return "no slot-steps were bought."
    useful = f"{percent(ledger_rows.useful(account) / bought)} of {bought:,} slot-steps bought computed a token"
    lost = [(amount, row) for row, amount in ledger_rows.of(account) if row.key not in ledger_rows.USEFUL and amount]
    if not lost:
        return f"{useful}."
    amount, row = max(lost, key=lambda found: found[0])
    advice = ledger_rows.advice(row, run.summary)
    what = "most of the rest is" if row.key == "no_demand" else "the largest loss is"
    return f"{useful}; {what} {row.key}, {percent(amount / bought)}: {row.meaning}{f' ({advice})' if advice else ''}."


def _throughput(run: Run) -> str:
    rates, requests = run.summary["rates"], run.summary["requests"]
    if rates["output_tokens_per_s"] is None:
        return "Nothing was run."
    return (
        f"{requests['finished']:,} of {requests['injected']:,} requests finished in "
        f"{duration(run.summary['makespan_s'])}: {significant(rates['finished_per_s'] or 0.0)} requests/s and "
        f"{significant(rates['output_tokens_per_s'])} output tokens/s."
    )


def warnings(runs: Sequence[Run]) -> list[str]:
    """What the numbers leave out or assume: each sentence once, with the names of its runs if not all share it."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for sentence in _of(run):
            found.setdefault(sentence, []).append(run.name)
    everyone = len(runs)
    return [
        sentence if len(names) == everyone else f"{', '.join(names)}: {sentence}" for sentence, names in found.items()
    ]


def _of(run: Run) -> list[str]:
    summary = run.summary
    found = [str(remark) for remark in summary["remarks"]]
    found += [sentence.partition(": ")[2] for sentence in sentences([summary])]
    if summary["tokens"]["lost"]:
        found.append(f"{summary['tokens']['lost']:,} tokens were generated and never collected (harvest: next).")
    for profile in run.profiles:
        beyond = profile["extrapolated"]
        if beyond is None:
            found.append(
                f"What the profile {profile['name']} was measured on is not known, so costs may be extrapolated."
            )
        elif beyond["any"]:
            found.append(
                f"{percent(beyond['any'])} of the steps lie beyond what the profile {profile['name']} measured."
            )
    if summary["attainment"] is None:
        found.append("The scenario sets no objectives, so attainment and goodput are not defined.")
    if summary["requests"]["finished"] < 100:
        found.append(f"Only {summary['requests']['finished']:,} requests finished: a p99 is one of the largest few.")
    found.append(
        f"One run with seed {summary['seed']}: differences may be due to chance; several seeds show how much."
    )
    return found

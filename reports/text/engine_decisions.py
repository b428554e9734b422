"""Runs of several engines on the same requests: which of their decisions the differences come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from reports.text.metric_comparison import Summary
from reports.text.rich_tables import add_numbers, headed_table
from reports.units import percent

Times = Mapping[str, int]


def decisions_table(names: Sequence[str], runs: Sequence[Summary], times: Sequence[Times]) -> Table:
    """One row a run: what its admission (two columns), its mixing (three), its preemption (two) and its cache did.

    Shares are of the slot time bought, of the time in steps (twice), of the slot time of decoding sequences, of the
    tokens computed, and of the tokens of prompts.

    times  nanoseconds in steps of each kind, of each run (`sim.log.step_kinds`)
    """
    table = headed_table()
    table.add_column("engine", overflow="fold", min_width=6)
    add_numbers(
        table,
        "mean\nwait s",
        "wait for\nmemory",
        "prefill\nsteps",
        "mixed\nsteps",
        "decodes\nstand\nstill",
        "preemp-\ntions",
        "tokens\nrecom-\nputed",
        "prompt\ntokens\ncached",
    )
    for name, run, spent in zip(names, runs, times, strict=True):
        table.add_row(name, *cells(run, spent))
    return table


def cells(run: Summary, times: Times) -> list[str]:
    """The cells of one run."""
    slots, tokens = run["slot_seconds"], run["tokens"]
    total = sum(times.values())
    waiting = slots["no_memory"] + slots["blocked"]
    wait = run["wait_s"]["mean"]
    return [
        "" if wait is None else f"{wait:.3f}",
        part(waiting, slots["bought"]),
        part(times["prefill"], total),
        part(times["mixed"], total),
        part(slots["no_budget"], slots["decode"] + slots["no_budget"]),
        f"{run['preemptions']:,}",
        part(tokens["recomputed"], tokens["computed"]),
        part(tokens["cached"], tokens["prompt"]),
    ]


def part(count: float, whole: float) -> str:
    """A share in percent, empty without a whole."""
    return percent(count / whole) if whole else ""

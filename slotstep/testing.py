"""Assertions about a run, for tests; a failure lists where the slot-steps went, and pytest leaves out their source.

    from slotstep.testing import assert_occupancy

    def test_the_batch_stays_full(slotstep_run):
        assert_occupancy(slotstep_run("scenarios/chat.yaml"), at_least=0.9)

The pytest plugin has the fixture `slotstep_run`. Heavy packages are imported when an assertion is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slotstep.runs.result import Result


def assert_occupancy(
    result: Result, *, at_least: float | None = None, at_most: float | None = None, exactly: float | None = None
) -> None:
    """Assert the useful share of the slot-steps bought. A failure lists the other rows of the ledger, largest first.

    Raises ValueError without a bound.
    """
    __tracebackhide__ = True
    occupancy = result.summary["occupancy"]
    if not _holds(occupancy, at_least, at_most, exactly):
        raise AssertionError(f"{_found('occupancy', occupancy, at_least, at_most, exactly)}\n{ledger(result)}")


def assert_metric(
    result: Result,
    name: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    exactly: float | None = None,
) -> None:
    """Assert a metric of the summary by its dotted name, such as `ttft_s.p99`. A metric without samples fails.

    Raises ValueError for an unknown name, and without a bound.
    """
    __tracebackhide__ = True
    from slotstep.experiments.metric_path import metric

    value = metric(result.summary, name)
    if not _holds(value, at_least, at_most, exactly):
        raise AssertionError(_found(name, value, at_least, at_most, exactly))


def ledger(result: Result) -> str:
    """The rows of the ledger that are not useful, largest first, with advice on each."""
    from reports import ledger_rows
    from reports.units import percent

    account = result.summary["slot_steps"]
    bought = account["bought"]
    lost = [(amount, row) for row, amount in ledger_rows.of(account) if row.key not in ledger_rows.USEFUL and amount]
    lines = [f"of {bought:,} slot-steps bought:"]
    for amount, row in sorted(lost, key=lambda found: -found[0]):
        told = ledger_rows.advice(row, result.summary)
        advice = f" ({told})" if told else ""
        lines.append(f"  {row.key:10} {percent(amount / bought):>6}  {amount:,}: {row.meaning}{advice}")
    return "\n".join(lines)


def _holds(value: object, at_least: float | None, at_most: float | None, exactly: float | None) -> bool:
    if at_least is at_most is exactly is None:
        raise ValueError("nothing is asserted; expected at_least, at_most or exactly")
    if not isinstance(value, int | float):
        return False
    low = at_least is None or value >= at_least
    return low and (at_most is None or value <= at_most) and (exactly is None or value == exactly)


def _found(name: str, value: object, at_least: float | None, at_most: float | None, exactly: float | None) -> str:
    limits = {"at least": at_least, "at most": at_most, "exactly": exactly}
    wanted = " and ".join(f"{words} {limit!r}" for words, limit in limits.items() if limit is not None)
    return f"{name} is {'undefined: no samples' if value is None else repr(value)}; expected {wanted}"

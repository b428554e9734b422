"""A plan in words and tables, from what `slotstep plan --json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.text.rich_tables import add_numbers, headed_table
from reports.units import ABSENT, duration, percent, printable, significant

Content = Mapping[str, Any]


def sentences(content: Content) -> list[str]:
    """The paragraph that a planner would write: the traffic, the choice, growth, what limits it, how sure it is."""
    found = [traffic(content)]
    if not content["complete"]:
        found.append("Not every candidate was looked at: the command was interrupted.")
    for place, growth in enumerate(content["growths"]):
        found += choice(content, place, growth)
    if content["prices"] is None and any(content["cheapest"]):
        found.append("Which kind of GPU is the cheapest cannot be told without prices (--prices FILE).")
    return [*found, *sureness(content), *together(content)]


def traffic(content: Content) -> str:
    """What the log asks for: its rate, and the slices that are planned for."""
    log = content["log"]
    said = (
        f"{log['requests']:,} requests in {duration(log['span_s'])}, {significant(log['rate'])} requests/s on "
        f"average, {log['prompt']:,.0f} prompt and {log['output']:,.0f} output tokens each."
    )
    return f"{said} Planned for the busiest stretches: {'; '.join(stretch(each) for each in content['slices'])}."


def stretch(each: Content) -> str:
    """`27 min to 30 min after the first request, the busiest by requests (7.77 requests/s)`."""
    return (
        f"{duration(each['begin'])} to {duration(each['end'])} after the first request, the busiest by "
        f"{' and by '.join(each['names'])} ({significant(each['rate'])} requests/s)"
    )


def times(growth: float) -> str:
    """`Today's traffic`, or so many times it."""
    return "Today's traffic" if growth == 1 else f"{growth:g} times today's traffic"


def choice(content: Content, place: int, growth: float) -> Iterator[str]:
    """What to buy for one growth, and what to be sure; for the first with the headroom and what limits it."""
    rows, chosen = content["rows"], content["cheapest"][place]
    if not chosen:
        of = "" if content["complete"] else " of those looked at"
        yield f"{times(growth)}: no candidate{of} bears it within the objectives."
        return
    words = [bought(content, rows[number], rows[number]["needs"][place], place == 0) for number in chosen]
    begin = "the cheapest is " if content["prices"] is not None else ""
    yield f"{times(growth)}: {begin}{' or '.join(words)}.{surely(content, place)}"


def surely(content: Content, place: int) -> str:
    """What is needed at the slow end of the step costs' intervals; empty for costs without one."""
    rows, chosen = content["rows"], content["cheapest_sure"][place]
    if all(rows[number]["slow_end"]["unknown"] is not None for number in content["cheapest"][place]):
        return ""
    words = []
    for number in chosen:
        need = rows[number]["needs"][place]
        sure = {"gpus": need["sure_gpus"], "replicas": need["sure_replicas"], "month": need.get("sure_month")}
        words.append(bought(content, rows[number], sure))
    if content["prices"] is None:
        kinds = dict.fromkeys(rows[number]["gpu"] for number in content["cheapest"][place])
        words += [f"no number of {kind}" for kind in kinds if kind not in {rows[number]["gpu"] for number in chosen}]
    return f" To be sure, {' or '.join(words) or 'no candidate'}."


def bought(content: Content, row: Content, need: Content, detailed: bool = False) -> str:
    """`4 h100-sxm (2 replicas of 2 under vllm), 8,760 USD a month`; `detailed`: with headroom and what limits it."""
    each = f" of {row['tensor_parallel']}" if row["tensor_parallel"] > 1 else ""
    share = f"{need['replicas']:,} {'replica' if need['replicas'] == 1 else 'replicas'}{each} under {row['engine']}"
    if detailed:
        share += f"; {need['headroom']:.2f} times the peak, limited by {row['bound_by'] or 'nothing found'}"
        share += f", missing {row['binding']} first" if row["binding"] else ""
    month = need.get("month")
    cost = "" if month is None else f", {money(month)} {content['currency']} a month"
    return f"{need['gpus']:,} {row['gpu']} ({share}){cost}"


def sureness(content: Content) -> Iterator[str]:
    """Both errors of the rates."""
    rows = [row for row in content["rows"] if row["refused"] is None and row["at"] is not None]
    if not rows:
        return
    gaps = [row["missed"] / row["at"] - 1 for row in rows if row["missed"]]
    wide = f" Between that rate and the first that is missed lie {percent(max(gaps))} at most." if gaps else ""
    yield (
        f"Sampling error: each rate is met at {100 * content['confidence']:g}% confidence by runs put together anew "
        f"from pieces of the slice.{wide}"
    )
    slow = [row["slow_end"] for row in rows if row["slow_end"]["unknown"] is None]
    if not slow:
        yield "Model error: not known; the step costs state none. It comes on top."
        return
    low, high = (extreme(each[kind] for each in slow for kind in ("decode", "prompts")) for extreme in (min, max))
    sources = "; ".join(dict.fromkeys(printable(each["source"]) for each in slow))
    yield (
        f'Model error, on top of it: "to be sure" is with steps {low:.2f} to {high:.2f} times as long as predicted, '
        f"the slow end of their interval (95%); {sources}."
    )


def together(content: Content) -> Iterator[str]:
    """Which services were simulated as a whole."""
    missed = [check for check in content["checks"] if not check["points"][-1]["met"]]
    if content["checks"]:
        met = len(content["checks"]) - len(missed)
        yield f"Services of several replicas that were simulated together, and met the objectives: {met}."
    for check in missed:
        row, last = content["rows"][check["row"]], check["points"][-1]
        what = f"{last['replicas']:,} replicas of {row['name']} at {significant(last['rate'])} requests/s"
        yield f"Simulated together, {what} did not meet the objectives with confidence."


def money(amount: float) -> str:
    """An amount with two decimals, without them from 1,000 on."""
    return f"{amount:,.0f}" if amount >= 1000 else f"{amount:,.2f}"


def plan_table(content: Content) -> Group:
    """The paragraph, the table of candidates, the Pareto front of today's traffic, cost, and notes."""
    parts: list[RenderableType] = [*(Text(line) for line in content["sentences"]), Text(), candidates(content)]
    refused = [row for row in content["rows"] if row["refused"] is not None]
    parts += [Text(f"{row['name']}: {printable(row['refused'])}") for row in refused]
    if content["front"] and content["front"][0]:
        parts += [Text(), Text(front_title(content)), front(content)]
    return Group(*parts, *([Text()] if content["notes"] else []), *(Text(line) for line in content["notes"]))


def front_title(content: Content) -> str:
    """What the Pareto front compares."""
    cost = "cost" if content["prices"] is not None else "the number of GPUs of its kind"
    objectives = ", ".join(content["objectives"])
    return f"{times(content['growths'][0])}: not beaten by another in {objectives} and {cost} at once:"


def variants(rows: Sequence[Content]) -> list[str]:
    """The settings in which rows of one candidate differ."""
    return [key for key in ("policy", "slots", "token_budget") if differ(rows, key)]


def differ(rows: Sequence[Content], key: str) -> bool:
    """Whether rows of any one candidate differ in a setting."""
    found: dict[str, set[Any]] = {}
    for row in rows:
        if row["refused"] is None:
            found.setdefault(row["name"], set()).add(row[key])
    return any(len(values) > 1 for values in found.values())


def candidates(content: Content) -> Table:
    """A row per candidate: what a replica bears, and the GPUs for each growth (to be sure in brackets)."""
    table = headed_table()
    rows, keys = content["rows"], variants(content["rows"])
    for head in ("GPU", "x", "engine", *keys):
        table.add_column(head.replace("_", "\n"), overflow="fold")
    add_numbers(table, "req/s a\nreplica", "slow\nend")
    table.add_column("limited by", overflow="fold")
    heads = [f"GPUs at\n{growth:g}x" for growth in content["growths"]]
    add_numbers(table, *heads, *([f"{content['currency']}\na month"] if content["prices"] is not None else []))
    for row in rows:
        if row["refused"] is not None:
            continue
        at, slow = row["at"], row["slow_end"]
        sure = "none" if slow["unknown"] is not None else significant(slow["at"]) if slow["at"] else ABSENT
        counts = [counted(need) for need in row["needs"]]
        cost = [] if content["prices"] is None else [priced(row["needs"])]
        names = [row["gpu"], str(row["tensor_parallel"]), row["engine"], *(printable(str(row[key])) for key in keys)]
        table.add_row(
            *names, significant(at) if at else ABSENT, sure, row["bound_by"] or ABSENT, *counts, *cost
        )  # fmt: skip
    return table


def counted(need: Content) -> str:
    """`3 (8)`: GPUs, and those that are needed to be sure."""
    if need["gpus"] is None:
        return ABSENT
    return f"{need['gpus']:,}" + (f" ({need['sure_gpus']:,})" if need["sure_gpus"] is not None else "")


def priced(needs: Sequence[Content]) -> str:
    """A month at the first growth."""
    return ABSENT if needs[0].get("month") is None else money(needs[0]["month"])


def front(content: Content) -> Table:
    """The candidates of the Pareto front with their latencies."""
    table = headed_table()
    table.add_column("candidate", overflow="fold")
    add_numbers(table, "GPUs", *content["objectives"])
    if content["prices"] is not None:
        add_numbers(table, f"{content['currency']}\na month", "per M\ninput", "per M\ncached", "per M\noutput")
    for number in content["front"][0]:
        row, need = content["rows"][number], content["rows"][number]["needs"][0]
        cells = [f"{need['gpus']:,}", *(duration(value) for value in need["latencies"])]
        if content["prices"] is not None:
            cells += [
                money(need["month"]),
                *(significant(need["per_million"][key]) for key in ("input", "cached", "output")),
            ]
        table.add_row(row["name"], *cells)
    return table

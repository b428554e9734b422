"""The result of a search for capacity as tables and sentences, from what `slotstep capacity --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.latency_origin import SINCE
from reports.text.rich_tables import add_numbers, headed_table
from reports.units import ABSENT, duration, percent, printable, significant

Content = Mapping[str, Any]

ROWS = 5
"""The number of ledger rows in the sentence on slot-seconds, the largest first."""


def capacity_table(content: Content) -> Group:
    """A row per variant, a sentence per profile; of the best variant its ledger and its simulated points."""
    parts: list[RenderableType] = [_variants(content), *(Text(line) for line in content["sentences"])]
    best = content["answers"][content["best"]] if content["best"] is not None else None
    if best is not None and best["knee"] is not None:
        parts += [Text(), Text(_ledger(best)), Text(), Text(f"{_named(content, best)}:"), curve_table(content, best)]
    return Group(*parts)


def _variants(content: Content) -> Table:
    table = headed_table()
    answers = content["answers"]
    several = {
        key for key in ("profile", "policy", "slots", "token_budget") if len({each[key] for each in answers}) > 1
    }
    shown = [key for key in ("profile", "policy", "slots", "token_budget") if key in several or key == "policy"]
    for key in shown:
        table.add_column(key.replace("_", "\n"), overflow="fold")
    knob = "replicas" if content["find"] == "replicas" else "req/s"
    add_numbers(
        table, knob, "output\ntok/s", "occu-\npancy", *(["per M\ntokens"] if content["price"] is not None else [])
    )
    table.add_column(
        "what a higher\nrate misses" if content["find"] != "replicas" else "what fewer\nmiss", overflow="fold"
    )
    table.add_column("limited by", overflow="fold")
    for each in answers:
        knee = each["knee"]
        numbers = [ABSENT] * (4 if content["price"] is not None else 3)
        if knee is not None:
            numbers = [at(content, each["at"]), f"{knee['output_tokens_per_s']:,.0f}", percent(knee["occupancy"])]
            numbers += [] if content["price"] is None else [money(knee["cost_per_million_output_tokens"])]
        names = [Text(printable(ABSENT if each[key] is None else each[key])) for key in shown]
        table.add_row(*names, *numbers, Text(each["binding"] or ABSENT), Text(each["bound_by"] or ABSENT))
    return table


def curve_table(content: Content, answer: Content) -> Table:
    """A row per simulated point: each objective, occupancy, number of runs, and whether all objectives are met."""
    table = headed_table()
    knob = "replicas" if content["find"] == "replicas" else "req/s"
    add_numbers(table, knob, *content["objectives"], "occupancy", "runs", "met")
    for point in answer["curve"]:
        cells = [_measured(each) for each in point["objectives"]]
        met = (
            "yes"
            if point["met"]
            else ("unstable" if point["stable"] is False else "no" if point["met"] is False else "open")
        )
        table.add_row(at(content, point["at"]), *cells, percent(point["occupancy"]), str(point["runs"]), met)
    return table


def _measured(objective: Content) -> str:
    if objective["value"] is None:
        return ABSENT if objective["late"] is None else f"{percent(objective['late'])} late"
    value = duration(objective["value"])
    return value if objective["late"] is None else f"{value} ({percent(objective['late'])} late)"


def _ledger(answer: Content) -> str:
    rows = answer["knee"]["slot_seconds"]
    bought = rows["bought"]
    largest = sorted(((row, time) for row, time in rows.items() if row != "bought"), key=lambda item: -item[1])
    listed = ", ".join(f"{row} {percent(time / bought)}" for row, time in largest[:ROWS] if time)
    return f"Where the slot-seconds go there: {listed}."


def _named(content: Content, answer: Content) -> str:
    several = len(content["answers"]) > 1
    name = printable(answer["policy"]) + (f", {printable(answer['profile'])}" if answer["profile"] else "")
    name += f", {answer['slots']} slots" if answer["slots"] is not None else ""
    return f"The curve of {name}" if several else "The curve"


def at(content: Content, value: float) -> str:
    """A value of what is searched over: a number of replicas, or a rate in requests/s."""
    return f"{value:,.0f}" if content["find"] == "replicas" else significant(value)


def money(amount: float | None) -> str:
    """A price with two decimals, below 1 with three significant digits; `-` for None."""
    return ABSENT if amount is None else (f"{amount:,.2f}" if amount >= 1 else significant(amount))


def sentences(content: Content) -> list[str]:
    """`h100: 17.2 req/s fcfs (12.1 at the model's slow end); limited by KV pages.`, objectives, both errors."""
    answers: Sequence[Content] = content["answers"]
    unit = "replicas" if content["find"] == "replicas" else "req/s"
    lines = []
    for profile in dict.fromkeys(each["profile"] for each in answers):
        mine = [each for each in answers if each["profile"] == profile]
        found = ", ".join(
            f"{_number(content, each)} {unit} {variant_label(mine, each)}".strip() + spread(content, each)
            for each in mine
        )
        causes = dict.fromkeys(each["bound_by"] for each in mine if each["bound_by"])
        bound = f"; limited by {' and '.join(causes)}" if causes else ""
        lines.append(f"{profile or content['scenario']}: {found}{bound}.")
    how = f"at {100 * content['confidence']:g}% confidence each, from at most {content['seeds']} runs a point"
    if content["find"] != "replicas":
        how += f", to within {100 * content['tolerance']:g}%"
    if content["held_back"]:
        how = f"counted from {SINCE[content['from']]}; {how}"
    lines.append(f"Met: {'; '.join(content['objectives']) or 'a queue that does not grow'} ({how}).")
    if content["resampled"] is not None:
        lines.append(
            f"The log is one sample of its traffic: each run is put together anew from its pieces of "
            f"{content['resampled']}, in another order and some of them twice, so that the confidence is about "
            "traffic like it."
        )
    return lines + errors(content)


def errors(content: Content) -> list[str]:
    """Two sentences: the sampling error of the answers, and the error of the model."""
    answers: Sequence[Content] = content["answers"]
    unit = "replicas" if content["find"] == "replicas" else "req/s"
    said = []
    for each in answers:
        if each["at"] is None:
            continue
        label = f" ({variant_label(answers, each)})" if len(answers) > 1 else ""
        bounds = f"{at(content, each['at'])} {unit} are met"
        if each["missed"] is not None:
            bounds += f", {at(content, each['missed'])} missed"
        said.append(bounds + label)
    lines = [f"Sampling error, at {100 * content['confidence']:g}% confidence: {'; '.join(said)}."] if said else []
    if not answers:
        return lines
    first = answers[0]
    if (drawn := first["uncertainty"]) is not None:
        return [*lines, f"Model error: under {drawn['draws']} draws of the step cost ({printable(drawn['source'])})."]
    slow = first["slow_end"]
    if slow["unknown"] is not None:
        return [*lines, f"Model error: not known; {slow['unknown']}. It comes on top."]
    return [
        *lines,
        f"Model error: at the slow end of the step cost's interval (95%) steps last {slow['decode']:.2f} times "
        f"(decodes alone) and {slow['prompts']:.2f} times (with prompts) as predicted. It comes on top. "
        f"Interval: {printable(slow['source'])}.",
    ]


def spread(content: Content, answer: Content) -> str:
    """The answer with the model's error: ` (90% interval 15.1 to 19.4)`, ` (6 GPUs; 7 to be 95% sure)`, or ` (12.1 at
    the model's slow end)`; empty for a cost without an interval.
    """
    drawn, slow = answer["uncertainty"], answer["slow_end"]
    if drawn is None:
        return "" if slow["unknown"] is not None or answer["at"] is None else f" ({slow_end(content, answer)})"
    if content["find"] != "replicas":
        low, high = (at(content, drawn[end] or 0) for end in ("low", "high"))
        return f" (90% interval {low} to {high})"
    if drawn["sure"] is None:
        return " (no number of them to be 95% sure)"
    if answer["at"] is None:
        return ""
    each = answer["devices"] / answer["at"]
    return f" ({answer['devices']:,} GPUs; {round(drawn['sure'] * each):,} to be 95% sure)"


def slow_end(content: Content, answer: Content) -> str:
    """`12.1 at the model's slow end`, or `6 GPUs; 7 at the model's slow end`."""
    found = answer["slow_end"]["at"]
    if content["find"] != "replicas":
        return f"{at(content, found or 0)} at the model's slow end"
    each = answer["devices"] / answer["at"]
    more = "no number of them" if found is None else f"{round(found * each):,}"
    return f"{answer['devices']:,} GPUs; {more} at the model's slow end"


def _number(content: Content, answer: Content) -> str:
    if answer["knee"] is None:
        return "no"
    return at(content, answer["at"])


def variant_label(answers: Sequence[Content], answer: Content) -> str:
    """The policy of an answer, with slots and token budget if they differ among `answers`."""
    parts = [printable(answer["policy"])]
    parts += [f"{answer['slots']} slots"] if len({each["slots"] for each in answers}) > 1 else []
    parts += [f"budget {answer['token_budget']}"] if len({each["token_budget"] for each in answers}) > 1 else []
    return ", ".join(parts)

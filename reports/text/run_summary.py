"""One run as a table: what became of the requests, how well the slots were used, and every latency.

Knows nothing of the log; it reads a summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports import latency_origin, ledger_rows
from reports.latency_origin import LATENCIES
from reports.units import duration, percent, printable, significant

ENDS = ("finished", "rejected", "timed_out", "cancelled", "waiting", "running")
MOST_TENANTS = 20
DOMINANT = 0.5
"""The share of the hit tokens from which on one prompt is said to dominate them."""
MOST_REPLICAS = 20
GROWS = (
    "the queue grew to the last arrival. The latencies are those of a run of this length; a longer one's are longer."
)


def summary_table(summary: Mapping[str, Any]) -> Group:
    """A summary (the JSON object of one run) as tables: the run, its latencies, its tenants if several.

    Times come in the unit that fits each; what was not measured is `-`. At most 20 tenants are listed, those
    with the most requests, and a line says how many are not.
    """
    parts: list[RenderableType] = [_title(summary), Text(), _facts(summary), latency_table(summary)]
    if summary["measured"] is not None:
        parts += [measured_facts(summary["measured"]), latency_table(summary["measured"])]
    if summary["queue_grows"]:
        parts.append(Text(f"Unstable: {GROWS}", style="bold"))
    if len(summary["tenants"]) > 1:
        parts.extend(_tenants(summary["tenants"]))
        if note := latency_origin.note([summary]):
            parts.append(Text(note))
    if len(summary["replicas"]) > 1:
        parts.append(replica_table(summary["replicas"]))
    return Group(*parts)


def replica_table(replicas: Sequence[Mapping[str, Any]]) -> Table:
    """What each replica did; numbered from 0, at most 20 of them."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for header in ("replica", "requests", "steps", "occupancy", "busy", "output tokens", "preemptions"):
        table.add_column(header, justify="right", no_wrap=True)
    for number, replica in enumerate(replicas[:MOST_REPLICAS]):
        table.add_row(
            str(number),
            f"{replica['requests']['injected']:,}",
            f"{replica['steps']:,}",
            percent(replica["occupancy"]),
            percent(replica["busy"]),
            f"{replica['output_tokens']:,}",
            f"{replica['preemptions']:,}",
        )
    if len(replicas) > MOST_REPLICAS:
        table.caption = f"and {len(replicas) - MOST_REPLICAS} replicas more"
    return table


def what_became(requests: Mapping[str, int], rejections: Mapping[str, int]) -> str:
    """The ends that requests came to, in words, without those that none came to: `7 finished, 1 waiting`."""
    words = []
    for end in ENDS:
        if requests[end]:
            because = _reasons(rejections) if end == "rejected" else ""
            words.append(f"{requests[end]:,} {end.replace('_', ' ')}{because}")
    return ", ".join(words) or "none to end"


def _reasons(rejections: Mapping[str, int]) -> str:
    given = {printable(why): count for why, count in rejections.items() if count}
    if len(given) < 2:
        return "".join(f" ({why})" for why in given)
    return f" ({'; '.join(f'{count:,} {why}' for why, count in given.items())})"


def censored(summary: Mapping[str, Any], latencies: Mapping[str, str] | None = None) -> str:
    """The share of all requests that have no such latency because of how they ended: `none`, or by latency."""
    named: dict[str, list[str]] = {}
    for key, name in (latencies or LATENCIES).items():
        named.setdefault(percent(summary[key]["censored_share"]), []).append(name)
    if all(summary[key]["censored_share"] == 0 for key in LATENCIES):
        return "none"
    return ", ".join(f"{share} ({', '.join(names)})" for share, names in named.items())


def latency_table(summary: Mapping[str, Any]) -> Table:
    """Each latency with its sample size, mean, percentiles and maximum."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("latency", no_wrap=True)
    for header in ("n", "mean", "p50", "p90", "p95", "p99", "max"):
        table.add_column(header, justify="right", no_wrap=True)
    for key, name in latency_origin.named(summary).items():
        found = summary[key]
        times = (duration(found[statistic]) for statistic in ("mean", "p50", "p90", "p95", "p99", "max"))
        table.add_row(name, f"{found['n']:,}", *times)
    return table


def _title(summary: Mapping[str, Any]) -> Text:
    names = f"{printable(summary['scenario'])}, {printable(summary['policy'])}"
    if "predictor" in summary:
        names += f" (predictor: {printable(summary['predictor'])})"
    return Text.assemble((names, "bold"), (f"   seed {summary['seed']}, log {summary['log_sha256'][:12]}", "dim"))


def _facts(summary: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, words in facts(summary):
        table.add_row(name, Text(words))
    return table


def measured_facts(window: Mapping[str, Any]) -> Table:
    """What happened in the measuring window; the latencies are of the requests that were wanted in it."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    rates, wanted = window["rates"], window["requests"]
    lines = {
        "measured": f"from {duration(window['from_s'])} to {duration(window['to_s'])}: "
        f"{wanted['injected']:,} wanted, {what_became(wanted, {})}",
        "rates": f"{_rate(rates['offered_per_s'])} requests/s offered, {_rate(rates['finished_per_s'])} finished, "
        f"{_rate(rates['output_tokens_per_s'])} output tokens/s",
        "by gaps": by_gaps(rates),
        "at once": at_once(window["concurrency"]),
    }
    if window["attainment"] is not None:
        lines["objectives"] = (
            f"met by {percent(window['attainment'])} of those wanted; goodput {_rate(window['goodput_per_s'])}/s"
        )
    for name, words in lines.items():
        table.add_row(name, Text(words))
    return table


def facts(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """What a run did, in lines: what each is about, and its words."""
    requests, steps, seconds = summary["requests"], summary["slot_steps"], summary["slot_seconds"]
    tokens, pages, rates = summary["tokens"], summary["pages"], summary["rates"]
    yield "requests", f"{requests['injected']:,} injected: {what_became(requests, summary['rejections'])}"
    yield "makespan", f"{duration(summary['makespan_s'])} in {summary['steps']:,} steps"
    yield (
        "occupancy",
        f"{percent(summary['occupancy'])}: {ledger_rows.useful(steps):,} useful of {steps['bought']:,} slot-steps",
    )
    bought = seconds["bought"]
    if bought:
        down = f", {percent(seconds['down'] / bought)} down" if seconds.get("down") else ""
        yield (
            "by time",
            f"{percent(ledger_rows.useful(seconds) / bought)} useful, {percent(seconds['idle'] / bought)} idle{down} "
            f"of {significant(bought)} slot-seconds bought",
        )
    yield (
        "rates",
        f"{_rate(rates['offered_per_s'])} requests/s offered, {_rate(rates['finished_per_s'])} finished, "
        f"{_rate(rates['output_tokens_per_s'])} output tokens/s, "
        f"{_rate(summary['tokens_per_slot_step'])} tokens per slot-step",
    )
    extra = "".join(f", {tokens[key]:,} {key}" for key in ("cached", "padding", "lost") if tokens[key])
    yield "by gaps", by_gaps(rates)
    yield "at once", at_once(summary["concurrency"])
    yield (
        "tokens",
        f"{tokens['prompt']:,} prompt, {tokens['output']:,} output; {tokens['computed']:,} computed, "
        f"{tokens['recomputed']:,} recomputed{extra}",
    )
    yield (
        "pages",
        f"{significant(pages['mean_used'])} used on average, {pages['peak_used']:,} at the peak, "
        f"of {pages['total']:,}; {percent(pages['mean_live_fraction'])} of held positions live",
    )
    if summary.get("preset"):
        yield "engine", f"decides as {summary['preset']} does"
    profiles = summary.get("profiles") or ([summary["profile"]] if summary.get("profile") else [])
    for profile in profiles:
        of = f" (replicas {', '.join(map(str, profile['replicas']))})" if len(profiles) > 1 else ""
        yield "profile", _profile(profile) + of
    if summary.get("cache") is not None:
        yield "cache", _cache(summary["cache"])
    if summary.get("sessions"):
        yield "sessions", _sessions(summary["sessions"])
    if summary.get("service"):
        yield "service", _service(summary["service"])
    yield "preemptions", f"{summary['preemptions']:,}"
    yield "censored", f"{censored(summary)}; latencies are of the n that have them"
    if summary["attainment"] is not None:
        yield (
            "objectives",
            f"met by {percent(summary['attainment'])} of the requests injected; "
            f"goodput {_rate(summary['goodput_per_s'])}/s"
            + (
                f"; counted from {latency_origin.SINCE[summary['objectives_from']]}"
                if latency_origin.held_back(summary)
                else ""
            ),
        )


def by_gaps(rates: Mapping[str, Any]) -> str:
    """The rates by the gaps between requests, in words."""
    offered, finished = (_rate(rates[f"{name}_by_gaps_per_s"]) for name in ("offered", "finished"))
    return f"{offered} requests/s offered, {finished} finished, by the n - 1 gaps between n requests"


def at_once(concurrency: Mapping[str, Any]) -> str:
    """How many requests there were at once, in words."""
    flight, running = (
        f"{concurrency[f'{name}_peak']:,} (mean {_rate(concurrency[f'{name}_mean'])})"
        for name in ("in_flight", "running")
    )
    return f"at most {flight} in flight, {running} running"


def _profile(profile: Mapping[str, Any]) -> str:
    words = f"{printable(profile['name'])}, content {profile['sha256'][:12]}; "
    beyond = profile["extrapolated"]
    if beyond is None:
        return words + "what it was measured on is not known"
    if not beyond["any"]:
        return words + "no step beyond what was measured"
    most = [f"{key} {percent(share)}" for key, share in beyond.items() if key != "any" and share]
    return words + f"{percent(beyond['any'])} of the steps beyond what was measured ({', '.join(most)})"


def _sessions(sessions: Mapping[str, int]) -> str:
    words = f"{sessions['begun']:,} begun, {sessions['completed']:,} completed"
    if sessions["broken_off"]:
        words += f"; {sessions['broken_off']:,} broken off, {sessions['unsent_turns']:,} turns never sent"
    return words


def _service(service: Mapping[str, Any]) -> str:
    words = [f"{service['attempts']:,} attempts"]
    if service["retried"]:
        words.append(f"{service['retried']:,} requests retried, {service['finished_by_retry']:,} of them finished")
    if service["outages"]:
        words.append(
            f"{service['outages']:,} outages: {service['moved']:,} requests moved, {service['interrupted']:,} lost, "
            f"{service['held']:,} held at the router"
        )
    if service["transfers"]:
        words.append(f"{service['transfers']:,} handed over, {duration(service['transfer_s']['mean'])} on average")
    return "; ".join(words)


def _cache(cache: Mapping[str, Any]) -> str:
    start = f"{cache['warm_pages']:,} pages warm at the start" if cache["warm_pages"] else "cold at the start"
    if not cache["queried_tokens"]:
        return f"{start}; nothing looked up"
    words = (
        f"{percent(cache['hit_rate'])} of {cache['queried_tokens']:,} tokens looked up were found; "
        f"{cache['evictions']:,} evictions, {significant(cache['idle_pages'])} pages cached but idle on average; "
        f"{start}"
    )
    if cache["resumed_queried_tokens"]:
        found, queried = cache["resumed_hit_tokens"], cache["resumed_queried_tokens"]
        words += f"; after preemptions another {found:,} of {queried:,} were found"
    share = cache["top_prompt_share"]
    if share is not None and share > DOMINANT:
        words += f". {percent(share)} of the hit tokens come from one prompt"
    return words


def _rate(value: float | None) -> str:
    return "-" if value is None else significant(value)


def _tenants(tenants: Mapping[str, Mapping[str, Any]]) -> Iterable[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("tenant", overflow="fold", min_width=8)
    shown = [(key, which) for key in ("wait_s", "ttft_s", "e2e_s") for which in ("mean", "p99")]
    for header in ("requests", "finished", *(f"{LATENCIES[key]}\n{which}" for key, which in shown)):
        table.add_column(header, justify="right", no_wrap=True)
    by_size = sorted(tenants.items(), key=lambda item: -item[1]["requests"]["injected"])
    for name, found in by_size[:MOST_TENANTS]:
        times = (duration(found[key][which]) for key, which in shown)
        counts = (f"{found['requests'][key]:,}" for key in ("injected", "finished"))
        table.add_row(Text(printable(name)), *counts, *times)
    yield table
    if len(by_size) > MOST_TENANTS:
        more = len(by_size) - MOST_TENANTS
        yield Text(f"{more:,} more tenants, none with more requests than these, are not listed")

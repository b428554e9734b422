"""The facts of one run in words, from its summary: pairs of a subject and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reports import latency_origin, ledger_rows
from reports.latency_origin import LATENCIES
from reports.text.headroom import sentence
from reports.text.metric_comparison import compared_value, written
from reports.units import ABSENT, duration, percent, printable, significant
from sim.accounting.metrics import chosen

ENDS = ("finished", "rejected", "timed_out", "cancelled", "waiting", "running")
DOMINANT = 0.5
"""The share of the hit tokens above which one prompt is said to dominate them."""
WAITS = ("held", "no_budget", "no_memory", "blocked", "limited", "no_demand", "idle", "down")
LEAST_SHOWN = 0.01
GROWS = (
    "the queue grew to the last arrival. The latencies are those of a run of this length; a longer one's are longer."
)


def facts(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Subject and words of each fact of a run; facts that the run does not have are left out."""
    requests, steps, seconds = summary["requests"], summary["slot_steps"], summary["slot_seconds"]
    tokens, pages, rates = summary["tokens"], summary["pages"], summary["rates"]
    yield "requests", f"{requests['injected']:,} injected: {what_became(requests, summary['rejections'])}"
    yield "makespan", f"{duration(summary['makespan_s'])} in {summary['steps']:,} steps"
    if headroom := sentence(summary):
        yield "headroom", headroom
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
        f"{_rates(rates)}, {_rate(summary['tokens_per_slot_step'])} tokens per slot-step",
    )
    extra = "".join(f", {tokens[key]:,} {key}" for key in ("cached", "rejected", "padding", "lost") if tokens[key])
    yield "by gaps", _by_gaps(rates)
    yield "at once", _at_once(summary["concurrency"])
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
    for pool in summary.get("pools") or ():
        yield f"{pool['pool']} pool", _pool(pool)
    for metric in chosen(summary.get("metrics", ())):
        if metric.subject and (value := summary.get(metric.key)) is not None:
            yield metric.subject, written(compared_value(metric.key, metric.values[""]), value)
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


def window_facts(window: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Subject and words of each fact of a measuring window, of the requests that clients wanted to send in it."""
    wanted = window["requests"]
    yield (
        "measured",
        f"from {duration(window['from_s'])} to {duration(window['to_s'])}: "
        f"{wanted['injected']:,} wanted, {what_became(wanted, {})}",
    )
    yield "rates", _rates(window["rates"])
    yield "by gaps", _by_gaps(window["rates"])
    yield "at once", _at_once(window["concurrency"])
    if window["attainment"] is not None:
        yield (
            "objectives",
            f"met by {percent(window['attainment'])} of those wanted; goodput {_rate(window['goodput_per_s'])}/s",
        )


def what_became(requests: Mapping[str, int], rejections: Mapping[str, int]) -> str:
    """The final states of requests with their counts, and the reasons for rejections: `7 finished, 1 waiting`."""
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
    """The share of censored requests by latency, for all of LATENCIES or those given; `none` if none is censored.

    A request is censored in a latency that it would have had if it had not been rejected, cancelled or cut off.
    """
    named: dict[str, list[str]] = {}
    for key, name in (latencies or LATENCIES).items():
        named.setdefault(percent(summary[key]["censored_share"]), []).append(name)
    if all(summary[key]["censored_share"] == 0 for key in LATENCIES):
        return "none"
    return ", ".join(f"{share} ({', '.join(names)})" for share, names in named.items())


def _rates(rates: Mapping[str, Any]) -> str:
    return (
        f"{_rate(rates['offered_per_s'])} requests/s offered, {_rate(rates['finished_per_s'])} finished, "
        f"{_rate(rates['output_tokens_per_s'])} output tokens/s"
    )


def _by_gaps(rates: Mapping[str, Any]) -> str:
    offered, finished = (_rate(rates[f"{name}_by_gaps_per_s"]) for name in ("offered", "finished"))
    return f"{offered} requests/s offered, {finished} finished, by the n - 1 gaps between n requests"


def _at_once(concurrency: Mapping[str, Any]) -> str:
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
    if service["room_wait_s"]["max"]:
        words.append(f"their KV waited {duration(service['room_wait_s']['mean'])} for room at the decode pool")
    return "; ".join(words)


def _pool(pool: Mapping[str, Any]) -> str:
    """Where the slot time of a pool went that did no work."""
    spent = pool["slot_seconds"]
    shares = {row: spent[row] / spent["bought"] for row in spent if row in WAITS} if spent["bought"] else {}
    waits = [f"{percent(share)} {row}" for row, share in shares.items() if share >= LEAST_SHOWN]
    return f"{percent(ledger_rows.useful(spent) / (spent['bought'] or 1))} useful; {', '.join(waits) or 'no wait'}"


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
    return ABSENT if value is None else significant(value)

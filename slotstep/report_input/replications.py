"""The result of `compare --seeds N --out` as findings of a report: estimates with intervals, and differences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traces.errors import BadInput

if TYPE_CHECKING:
    from reports.page.report import Report

NAME = "replications.json"


def replications(folder: Path) -> Report:
    """The report of a folder with replications. Raises BadInput for an invalid file."""
    import pandas as pd

    from reports.page.report import Finding, Report

    path = folder / NAME
    try:
        found = json.loads(path.read_text("utf-8"))
        seeds, policies, differences = len(found["seeds"]), found["policies"], found["differences"]
        said = list(sentences(differences, seeds))
        rows = [row for policy, each in policies.items() for row in estimates(policy, each)]
        remarks = list(caveats(policies, seeds))
        compared = pd.DataFrame([difference(each) for each in differences])
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: expected what `slotstep compare --seeds --out` wrote: {error!r}") from None
    head = (
        f"{seeds} seeds, the same requests for every policy; {100 * found['confidence']:g}% intervals. Times are in "
        "seconds; an end that is not there is beyond every sample."
    )
    findings = [Finding("Estimates", pd.DataFrame(rows), [head, *said])]
    if not compared.empty:
        findings.append(Finding("Differences, the second's value minus the first's, seed by seed", compared))
    return Report(str(found["scenario"]), (), findings, remarks)


def estimates(policy: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per metric of a policy, with and without the warm-up."""
    unstable = "unstable" if found["unstable_runs"] else ""
    for warm_up, metrics in (("with", found["metrics"]), ("cut", found["after_warm_up"])):
        for metric, estimate in metrics.items():
            yield {"metric": metric, "policy": policy, "warm-up": warm_up, "queue": unstable, **shown(estimate)}


def shown(estimate: Mapping[str, Any]) -> dict[str, Any]:
    """An estimate's columns."""
    return {"value": estimate["value"], "low": estimate["low"], "high": estimate["high"], "n": estimate["n"]}


def difference(found: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the differences."""
    verdict = "not known" if found["value"] is None else "differ" if found["differ"] else "not told apart"
    return {
        "metric": found["metric"],
        "first": found["first"],
        "second": found["second"],
        "verdict": verdict,
        **shown(found),
    }


def sentences(differences: list[Mapping[str, Any]], seeds: int) -> Iterator[str]:
    """The significant and insignificant differences as text."""
    from reports.units import significant

    def written(value: float | None) -> str:
        if value is None:
            return "..."
        return f"{'-' if value < 0 else ''}{significant(abs(value))}"

    for one in differences:
        if one["differ"]:
            told = f"{written(one['value'])} [{written(one['low'])}, {written(one['high'])}]"
            yield f"{one['first']} and {one['second']} differ in {one['metric']} by {told}, {seeds} seeds."
    for pair in dict.fromkeys((one["first"], one["second"]) for one in differences):
        same = [
            one["metric"]
            for one in differences
            if (one["first"], one["second"]) == pair and one["value"] is not None and not one["differ"]
        ]
        if same:
            yield f"{pair[0]} and {pair[1]} are not told apart in {', '.join(same)}."


def caveats(policies: Mapping[str, Any], seeds: int) -> Iterator[str]:
    """Remarks that are needed to read the numbers."""
    for policy, found in policies.items():
        if found["unstable_runs"]:
            yield (
                f"{policy}: unstable, the queue grows to the end of {found['unstable_runs']} of {seeds} runs; its "
                "latencies are those of runs of this length."
            )
        if found["censored"]:
            yield (
                f"{policy}: {found['censored']:,} of {found['requests']:,} requests never ended; means leave them "
                "out, percentiles count them as longest."
            )

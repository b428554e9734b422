"""`slotstep calibrate from-log`: step costs from measured requests, with the simulator inside the fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.calibrate import text
from slotstep.cli.output import print_json, say, show
from slotstep.cli.params import About, AsJson, OptionalProfileFile, Prompts, Settings, Yes, permitted

if TYPE_CHECKING:
    from calibrate.fit.from_log import LogFit
    from calibrate.fit.initial import Prior
    from calibrate.profiles.profile import Profile
    from slotstep.validation.measured_runs import Run


def from_log(
    measurements: Annotated[list[Path], typer.Argument(help="Measured runs, in any format that has measurements.")],
    scenario: Annotated[
        Path, typer.Option("--scenario", metavar="FILE", help="The engine they ran on, and its clients.")
    ],
    out: OptionalProfileFile = None,
    about: About = None,
    hold_out: Annotated[
        list[str] | None, typer.Option("--hold-out", metavar="RUN", help="A run to predict unseen. May be repeated.")
    ] = None,
    free: Annotated[
        str | None,
        typer.Option(metavar="TERM,...", help="Fit these terms only; the others are those of the scenario's cost."),
    ] = None,
    first: Annotated[
        int, typer.Option(min=20, help="Most requests of each run to fit; the rest is predicted.")
    ] = 2000,
    prompts: Prompts = None,
    settings: Settings = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the starts and of the bootstrap.")] = 0,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Fit a roofline, or some terms of any cost, to measured requests, so that simulated latencies match them.

    If the engine logged its steps, fit those first (from-steps): they identify more terms and are less sensitive to
    noise.
    """
    from slotstep.runs import costs
    from slotstep.validation import measured_runs, provenance

    of = provenance.stated(about or (), None if free else out)
    runs = measured_runs.runs(measurements, scenario, permitted(settings, yes), prompts)
    for remark in (*measured_runs.remarks(runs), *measured_runs.hints(runs)):
        say(remark)
    for log in measured_runs.logs_beside(measurements):
        say(f"{log} is a log of steps: fit it first, slotstep calibrate from-steps {log}")
    kept = costs.profile(runs[0].scenario) if free else None
    if free:
        of = provenance.stated(about or (), out, kept.content if kept else None)
    known, start = (None, "the scenario's cost") if free else shape_prior(of)
    found = fitted(runs, hold_out or (), free.split(",") if free else (), first, seed, known)
    said = [*found.lines(), *(known.edges(found.cost) if known else []), *unknown_hits(runs)]
    if out is not None:
        text.save(log_profile(found, said, runs, of, out.stem, kept), out)
    if as_json:
        told = {
            "cost": text.coefficients(found.cost),
            "delay": found.delay,
            "start": start,
            "free": list(found.free),
            "cpu_s": found.cpu_s,
            "repeats": [{"runs": list(each.runs), "spread": dict(each.spread)} for each in found.noise.repeats],
        }
        spread = text.confidence(found.intervals, said)
        print_json(told | spread | {"errors": json.loads(found.errors.to_json(orient="records"))})
        return
    print(f"fitted in {found.cpu_s:.0f} s of CPU time, from {start}; predicted over measured:")
    show(
        text.error_table(found.errors),
        text.coefficient_table(found.cost, found.intervals, found.identified, found.delay),
    )
    for line in [*text.rate_lines(found.cost, of), *said]:
        print(line)


def unknown_hits(runs: Sequence[Run]) -> list[str]:
    """A line if prompts may have been found in a prefix cache: they hide what a step with a prompt costs."""
    if not any(run.unknown_hits for run in runs):
        return []
    return [
        "prompt_launches, per_chunk, per_token: not identified separately from prompts found in the cache: "
        "the engine caches prefixes and the content of the prompts is not stated; say --prompts N if N came in turn"
    ]


def shape_prior(of: Mapping[str, Any]) -> tuple[Prior | None, str]:
    """The prior from the shapes of the model and device in `--about`, None if they are unknown; and its description.

    Raises BadInput for a device that has no rate in the dtype, and for devices that its heads cannot be dealt out to.
    """
    from calibrate.fit.initial import prior
    from traces.errors import BadInput

    known = text.known_shapes(of)
    if known is None or known[0].window:
        return None, "a guess"
    model, device = known
    try:
        return prior(
            model, device, of["dtype"], of["tensor_parallel"]
        ), f"what shapes say of {model.name} on {device.name}"
    except ValueError as error:
        raise BadInput(f"--about {error}") from None


def fitted(
    runs: Sequence[Run], kept_back: Sequence[str], free: Sequence[str], first: int, seed: int, known: Prior | None
) -> LogFit:
    """The fit to all runs but the held-out ones. Raises BadInput for an unknown run or term."""
    from calibrate.fit.from_log import fit
    from sim.cost.forms import Curve
    from slotstep.runs import costs
    from traces.errors import BadInput, nearest

    names = [run.name for run in runs]
    for name in kept_back:
        if name not in names:
            raise BadInput(f"--hold-out {name}: no such run; did you mean {nearest(name, names)}?")
    used, others = ([run for run in runs if (run.name in kept_back) is back] for back in (False, True))
    if not used:
        raise BadInput("--hold-out: every run is kept back; expected at least one to fit")
    start: Curve | None = known.start if known else None
    if free:
        given = costs.cost(used[0].scenario)
        if not isinstance(given, Curve):
            raise BadInput("--free: the scenario's cost is a unit, which has no terms; expected any other kind")
        start = given
    try:
        return fit(
            [run.for_fit() for run in used],
            [run.for_fit() for run in others],
            start,
            used[0].delay,
            free,
            known.within if known else None,
            first,
            seed=seed,
            progress=say,
        )
    except ValueError as error:
        raise BadInput(str(error)) from None


def log_profile(
    found: LogFit, said: Sequence[str], runs: Sequence[Run], of: Mapping[str, Any], name: str, kept: Profile | None
) -> str:
    """The text of the profile of a fit to runs.

    said  lines on what the runs do not identify
    kept  the profile of the terms that were not fitted, None without one
    """
    from slotstep.validation import provenance

    label = found.errors["part"].str.replace(" ", "_") + "_" + found.errors["metric"].str.removesuffix("_s")
    residuals = found.errors["error"].abs().groupby(label, sort=False).mean().to_dict()
    others, missing = "", list[str]()
    if kept is not None:
        others = f"; all terms but {', '.join(found.free)} are those of profile {kept.name}, {kept.sha256}"
        missing = [each for each in kept.content["not_included"] if "host" not in each or "host" not in found.free]
    turns = {} if runs[0].prompts is None else {"prompts_sent_in_turn": runs[0].prompts}
    used = [run.name for run in runs if run.name in set(found.errors.loc[found.errors["part"] == "fitted", "run"])]
    made = provenance.profile(
        found.cost,
        of,
        name,
        method="fitted to measured requests with the simulator inside the fit; the residuals are the mean size of "
        "the relative errors of mean, median, 90th and 99th percentile",
        source=f"measured runs {', '.join(used)}{others}",
        residuals=residuals,
        range=kept.content["range"] if kept else None,
        not_included=[*missing, "the way between client and engine, which the scenario gives as clients.delay"],
        details={"client_delay_ns": found.delay, **turns, **text.confidence(found.intervals, said)},
        uncertainty=text.uncertainty(found.cost, found.free, found.covariance, kept),
    )
    return made.text()

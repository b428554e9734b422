"""Text and files of the fits of `slotstep calibrate`: coefficients, intervals and errors as lines and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slotstep.cli.output import say

if TYPE_CHECKING:
    import pandas as pd

    from calibrate.arrays import Floats
    from calibrate.fit.from_steps import StepFit
    from calibrate.fit.identifiability import Identified
    from calibrate.hardware.devices import Device
    from calibrate.models.architecture import Architecture
    from calibrate.profiles.profile import Profile
    from sim.cost.forms import Curve


def known_shapes(of: Mapping[str, Any]) -> tuple[Architecture, Device] | None:
    """The model and device that `--about` names; None unless both are known and dtype and devices are given."""
    from calibrate.hardware.devices import DEVICES
    from calibrate.models.architecture import BYTES
    from calibrate.models.registry import MODELS
    from slotstep.validation.provenance import value_at

    model, device = MODELS.get(str(value_at(of, "model.name"))), DEVICES.get(str(of.get("device")))
    devices, dtype = of.get("tensor_parallel"), of.get("dtype")
    if model is None or device is None or str(dtype) not in BYTES or not isinstance(devices, int) or devices < 1:
        return None
    return model, device


def rate_lines(cost: Curve, of: Mapping[str, Any]) -> list[str]:
    """The coefficients as bandwidths and rates beside the data sheet, if model and device are known.

    Only for a roofline of a model on one device.
    """
    from calibrate.fit.rescale import attained
    from sim.cost.forms import Roofline

    known = known_shapes(of)
    if known is None or of["tensor_parallel"] != 1 or not isinstance(cost, Roofline):
        return []
    lines = []
    for each in attained(cost, *known, of["dtype"]):
        share = f", {each.value / each.sheet:.0%} of the data sheet" if each.sheet else ""
        lines.append(f"{each.term}: {each.what} {each.value / 1e12:.3g}e12{share}")
    return lines


def error_table(errors: pd.DataFrame) -> Any:
    """Relative errors of predicted latencies, a row per run and part."""
    from rich import box
    from rich.table import Column, Table

    columns = [("ttft_s", "p50"), ("ttft_s", "p99"), ("tpot_s", "p50"), ("e2e_s", "p50"), ("e2e_s", "p99")]
    heads = [f"{metric.removesuffix('_s').upper()} {statistic}" for metric, statistic in columns]
    right = [Column(name, justify="right", no_wrap=True) for name in ("n", *heads)]
    table = Table(Column("run", overflow="fold"), Column("part", no_wrap=True), *right, box=box.SIMPLE)
    for (run, part), rows in errors.groupby(["run", "part"], sort=False):
        known = rows.set_index(["metric", "statistic"])["error"]
        cells = [f"{known[column]:+.1%}" if column in known.index else "" for column in columns]
        table.add_row(str(run), str(part), f"{rows['n'].max():,}", *cells)
    return table


def visited(steps: Any) -> dict[str, float]:
    """The largest values among the steps, in the form of a profile's range."""
    tokens = steps["decodes"] + steps["chunk_tokens"]
    return {
        "sequences": int((steps["decodes"] + steps["chunks"]).max()),
        "context": int(steps["context"].max()),
        "tokens": int(tokens.max()),
    }


def step_lines(found: StepFit) -> str:
    """The quality of a fit to steps as lines of text."""
    lines = []
    for name, of in found.residuals.items():
        if of["n"]:
            lines.append(
                f"{name.replace('_', ' ')}: {of['n']:,} steps, each {of['mean_abs']:.1%} off on average, "
                f"one in ten by {of['p90_abs']:.1%} or more, median {of['median']:+.1%}"
            )
    return "\n".join(lines + found.identified.lines())


def coefficients(cost: Curve) -> dict[str, float]:
    """The nonzero coefficients of a curve, ns."""
    from slotstep.validation.provenance import coefficients as rounded

    return rounded(cost)


def confidence(intervals: Mapping[str, tuple[float, float]], said: Sequence[str]) -> dict[str, Any]:
    """The intervals of coefficients, and the lines on unidentified ones."""
    return {
        "intervals": {name: [float(f"{bound:.4g}") for bound in bounds] for name, bounds in intervals.items()},
        "not_identified": list(said),
    }


def uncertainty(
    cost: Curve, fitted: Iterable[str], covariance: Floats, kept: Profile | None = None
) -> dict[str, Any]:
    """The uncertainty of a fitted cost as a profile states it.

    covariance  of the fitted terms, `delay` among them or not, in their order, ns^2
    kept        the profile of the terms that were not fitted
    """
    from calibrate.uncertainty.error_model import of_fit

    terms = list(fitted)
    inside = [place for place, name in enumerate(terms) if hasattr(cost, name)]
    values = {terms[place]: getattr(cost, terms[place]) for place in inside}
    return of_fit(values, covariance[inside][:, inside], None if kept is None else kept.content).content()


def coefficient_table(
    cost: Curve, intervals: Mapping[str, tuple[float, float]], identified: Identified, delay: float = 0.0
) -> Any:
    """Each fitted coefficient with its interval, and `delay`; unidentified ones are marked."""
    from rich import box
    from rich.table import Column, Table

    from slotstep.scenario.units import text

    right = [Column(name, justify="right", no_wrap=True) for name in ("value", "5%", "95%")]
    table = Table(Column("coefficient", no_wrap=True), *right, "", box=box.SIMPLE)
    loose = {*identified.unseen, *identified.unsure, *(name for group in identified.tied for name in group)}
    for name, (low, high) in intervals.items():
        shown = [text(float(f"{value:.4g}")) for value in (getattr(cost, name, delay), low, high)]
        table.add_row(name, *shown, "not identified" if name in loose else "")
    return table


def mean_errors(profile: Profile) -> str:
    """The mean residuals of a profile as text."""
    residuals: Mapping[str, Any] = profile.content["residuals"] or {}
    means = {key.removesuffix("_mean"): value for key, value in residuals.items() if key.endswith("_mean")}
    return ", ".join(f"{key.replace('_', ' ')} {value:.1%}" for key, value in means.items()) or "-"


def save(content: str, out: Path) -> None:
    """Write a file atomically, and say so."""
    from reports.files import write_text

    write_text(out, content)
    say(f"written to {out}")


def write_profile(made: Profile, out: Path) -> None:
    """Write a profile atomically, and print its residuals and digest."""
    from reports.files import write_text

    write_text(out, made.text())
    print(f"{out}: {made.kind}, content {made.sha256[:12]}; mean error {mean_errors(made)}")

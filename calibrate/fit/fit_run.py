"""From a measurement to a profile: the curve, its error at every point, and each point over the roofline bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from calibrate.fit.from_steps import fit as fit_roofline
from calibrate.fit.table_fit import errors, residuals, tabulate
from calibrate.hardware.roofline_bound import lower_bound_ns
from calibrate.measure.frame import by_point, contention, drift_of
from calibrate.measure.robust import Drift
from calibrate.models.decoder_shape import from_written
from calibrate.profiles.forms import curve
from calibrate.profiles.profile import Profile, profile

Form = Literal["table", "roofline"]


@dataclass(frozen=True)
class Fitted:
    """A fitted curve with its errors.

    kind, coefficients  of the curve, as a profile holds them
    points              the measured points, with `error` (predicted over measured, less 1) and `over_floor` (measured
                        over the roofline bound; NaN without ceilings)
    residuals           mean and largest error by kind of point
    drift               of the control point
    contention          wall time over CPU time, the median; None without CPU time
    clock               by which the steps were timed
    skipped             points that the device had no memory for, with the reason
    ceilings            measured bandwidths and rate of the device; None: not measured
    """

    kind: Form
    coefficients: dict[str, Any]
    points: pd.DataFrame
    residuals: dict[str, float]
    drift: Drift
    contention: float | None
    clock: str
    skipped: list[str]
    ceilings: dict[str, float] | None

    @property
    def range(self) -> dict[str, float]:
        """The largest measured values, as a profile states them."""
        tokens = self.points["decodes"] + self.points["chunk_tokens"]
        reach = [max(start + count for start, count in point.rows) for point in self.points["point"]]
        return {
            "sequences": int((self.points["decodes"] + self.points["chunks"]).max()),
            "context": int(self.points["context"].max()),
            "tokens": int(tokens.max()),
            "position": max(reach),
        }

    def profile(self, about: Mapping[str, Any], name: str, date: str, host_ns: float = 0.0) -> Profile:
        """The profile; `about` describes where the measurement was made, `host_ns` is added to every step."""
        clocks = {"device": "device time", "cpu": "CPU time of the computing thread", "wall": "wall time of the call"}
        coefficients = {**self.coefficients, **({"host": host_ns} if host_ns else {})}
        said = ["model", "device", "memory", "driver", "software", "dtype", "page_size"]
        return profile(
            {self.kind: coefficients},
            name=name,
            **{key: about[key] for key in said if about.get(key) is not None},
            tensor_parallel=1,
            date=date,
            method=f"{self.kind} from medians of {int(self.points['n'].sum())} timed steps of {len(self.points)} "
            f"shapes, by {clocks[self.clock]}, in rounds of random order",
            source="our own paged decoder, measured with slotstep calibrate measure",
            licence="Apache-2.0",
            residuals=self.residuals,
            range=self.range,
            not_included=self.missing,
            details={
                "drift": self.drift.verdict,
                "contention": self.contention,
                "ceilings": self.ceilings,
                "skipped": self.skipped,
                "points": self.told(),
            },
        )

    @property
    def missing(self) -> list[str]:
        """Costs of a real step that the curve does not include."""
        always = ["copies of swapped pages"]
        return always if self.clock == "wall" else [*always, "what the host does between two steps"]

    def told(self) -> list[dict[str, Any]]:
        """A row for every point, as YAML holds it."""
        columns = ["name", "held_out", "n", "duration_ns", "mad_ns", "low_ns", "high_ns", "error", "over_floor"]
        rows = self.points[columns].to_dict("records")
        return [{str(key): rounded_value(value) for key, value in row.items()} for row in rows]


def fit(
    lines: Sequence[dict[str, Any]], about: Mapping[str, Any], form: Form = "table", clock: str | None = None
) -> Fitted:
    """A curve fitted to the lines of a measurement. The clock is the CPU's where it was read, else the wall's.

    Where decodes ran as captured graphs (`graphs` in `about`), the curve pads its tokens to their sizes.

    Raises ValueError for a clock that was not read, and for too few points to fit.
    """
    chosen = clock or ("cpu" if contention(lines) is not None else "wall")
    points = by_point(lines, chosen)
    coefficients: dict[str, Any]
    if form == "table":
        coefficients = tabulate(points)
    else:
        found = fit_roofline(points[~points["held_out"]], hold_out=0.0, draws=20).cost
        coefficients = {key: value for key, value in asdict(found).items() if isinstance(value, float) and value}
    if about.get("graphs"):
        coefficients["graph_sizes"] = list(about["graphs"])
    made = curve(form, coefficients)
    bounds = [line for line in lines if line["kind"] == "ceilings"]
    ceilings = {key: value for key, value in bounds[-1].items() if key != "kind"} if bounds else None
    points["error"] = errors(made, points).to_numpy()
    points["over_floor"] = over_floor(points, about, ceilings)
    return Fitted(
        form,
        coefficients,
        points,
        residuals(made, points),
        drift_of(lines, chosen),
        contention(lines),
        chosen,
        [f"{line['name']}: {line['reason']}" for line in lines if line["kind"] == "skip"],
        ceilings,
    )


def over_floor(points: pd.DataFrame, about: Mapping[str, Any], ceilings: Mapping[str, float] | None) -> list[float]:
    """Measured time over the roofline bound, one number a point; NaN without ceilings or the shape of the model."""
    if ceilings is None or "shape" not in about:
        return [float("nan")] * len(points)
    shape = from_written(about["shape"])
    return [
        float(lasts / lower_bound_ns(shape, about["dtype"], point, ceilings))
        for point, lasts in zip(points["point"], points["duration_ns"], strict=True)
    ]


def rounded_value(value: Any) -> Any:
    """A value of a frame as YAML holds it: None for NaN, floats with seven digits."""
    if isinstance(value, float):
        return None if value != value else float(f"{value:.7g}")
    return value

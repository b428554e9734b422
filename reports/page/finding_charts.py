"""The charts of a finding: points with their intervals, joined over numbers; a line per value of one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from markupsafe import Markup

from reports.figures.distributions import WIDE_RANGE
from reports.page import svg
from reports.page.line_charts import significant_or_zero
from reports.page.report import Curve, Finding

FLAT = 10.0
"""How many times the median the largest value may be before a linear scale would flatten the rest."""
APART = 4.0
"""The horizontal distance between the interval strokes of different lines at the same x, in units of the view box."""
NAMED_APART = 12.0
"""The same of points with their strokes over a name."""


@dataclass(frozen=True)
class FindingChart:
    """A chart: its title, a remark on points left out, its figure, and the name and CSS style of each line."""

    title: str
    remark: str
    figure: Markup
    lines: Sequence[tuple[str, str]]


def finding_chart(finding: Finding, curve: Curve) -> FindingChart:
    """The chart of a curve of a finding, without points and bounds that are not finite.

    Over a column of text its values stand beside each other, in the order of the table.
    """
    whole, names = finding.frame, list[str]()
    if not pd.api.types.is_numeric_dtype(whole[curve.across]):
        codes, found = pd.factorize(whole[curve.across])
        whole, names = whole.assign(**{curve.across: codes}), list(map(str, found))
    points = whole[[curve.across, curve.up]].astype("float64")
    finite = np.isfinite(points.to_numpy("float64")).all(axis=1)
    frame = whole[finite]
    title = f"{curve.up} over {curve.across}"
    left = int((~finite).sum())
    remark = f"{left} of {len(finite)} points are not finite and not drawn" if left else ""
    box = svg.Box(height=280.0, left=64.0)
    if frame.empty:
        return FindingChart(
            title, remark, box.figure(title, svg.text(box.width / 2, box.height / 2, "no points", "middle")), ()
        )
    groups: list[tuple[object, pd.DataFrame]] = [("", frame)]
    if curve.split:
        groups = [(name, pd.DataFrame(part)) for name, part in frame.groupby(curve.split, sort=False)]
    x, y = _scales(box, frame[curve.across].to_numpy("float64"), _heights(frame, curve))
    most = (6, 5)
    if names:
        x, most = box.x(-0.5, len(names) - 0.5), (len(names), 5)
    marks: list[Markup] = []
    if curve.level is not None:
        at = float(y(curve.level))
        marks.append(svg.tag("line", x1=box.left, x2=box.width - box.right, y1=at, y2=at, class_="level"))
    for place, (_, part) in enumerate(groups):
        part = part.sort_values(curve.across)
        across, up = x(part[curve.across].to_numpy("float64")), y(part[curve.up].to_numpy("float64"))
        joined = "M" + " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(across, up, strict=True))
        if names:
            across = across + NAMED_APART * (place - (len(groups) - 1) / 2)
        else:
            marks.append(svg.tag("path", d=joined, class_="line", style=svg.look(place)))
        if curve.low:
            ends = part[[curve.low, curve.high]].to_numpy("float64")
            for at, (low, high) in zip(across, ends, strict=True):
                if np.isfinite([low, high]).all() and (high > 0 or not y.log):
                    beside = at if names else at + APART * (place - (len(groups) - 1) / 2)
                    start = max(low, y.low) if y.log else low
                    stroke = f"M{beside:.1f} {float(y(start)):.1f}V{float(y(high)):.1f}"
                    marks.append(svg.tag("path", d=stroke, class_="line", style=f"stroke:var(--s{place % svg.HUES})"))
        dot = f"fill:var(--s{place % svg.HUES})"
        marks += [
            svg.tag("circle", cx=float(a), cy=float(b), r=3, style=dot) for a, b in zip(across, up, strict=True)
        ]
    axes = box.axes(
        x, y, partial(name_at, names, box) if names else significant_or_zero, significant_or_zero, curve.across, most
    )
    return FindingChart(
        title, remark, box.figure(title, axes, *marks), [(str(n), svg.look(i)) for i, (n, _) in enumerate(groups)]
    )


def name_at(names: Sequence[str], box: svg.Box, place: float) -> str:
    """The name at a place of the x axis, cut to what fits between two; empty between names."""
    if not float(place).is_integer() or not 0 <= place < len(names):
        return ""
    name = names[int(place)]
    room = int((box.width - box.left - box.right) / len(names) / svg.LETTER) - 1
    return name if len(name) <= room else f"{name[: max(room - 1, 1)]}…"


def _heights(frame: pd.DataFrame, curve: Curve) -> svg.Floats:
    """All values that the y axis has to cover: points, finite bounds, and the level."""
    columns = [curve.up, *([curve.low, curve.high] if curve.low else [])]
    values: svg.Floats = frame[columns].to_numpy("float64").ravel()
    finite: svg.Floats = values[np.isfinite(values)]
    return finite if curve.level is None else np.append(finite, curve.level)


def _scales(box: svg.Box, across: svg.Floats, heights: svg.Floats) -> tuple[svg.Scale, svg.Scale]:
    low, high = float(across.min()), float(across.max())
    if low > 0 and high > WIDE_RANGE * low:
        x = box.x(low / 1.2, high * 1.2, log=True)
    else:
        margin = 0.05 * (high - low) or 0.5
        x = box.x(low - margin, high + margin)
    above = heights[heights > 0]
    if len(above) and len(above) > len(heights) / 2 and heights.max() > FLAT * float(np.median(above)):
        return x, box.y(float(above.min()) / 1.2, float(heights.max()) * 1.2, log=True)
    return x, box.y(min(0.0, float(heights.min())), float(heights.max()) * 1.08 or 1.0)

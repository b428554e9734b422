"""The result of a search for capacity as a figure: each objective over the rate or the number of replicas."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from reports.figures import style
from reports.text.capacity import Content, variant_label
from reports.units import duration


def capacity_figure(content: Content) -> Figure:
    """A panel per objective: its statistic over what is searched over, a line per variant, and its limit.

    `content` is the object that `slotstep capacity --json` prints. Without objectives the panel shows occupancy.
    """
    panels = content["objectives"] or ["occupancy"]
    figure = style.figure(7, 2.6 * len(panels))
    handles: dict[str, Any] = {}
    for place, (axes, text) in enumerate(
        zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True)
    ):
        style.bare(axes, "left", "bottom")
        style.title(axes, text, "")
        for number, answer in enumerate(content["answers"]):
            colour, dashes = style.line(number)
            known = [(point["at"], _height(point, place)) for point in answer["curve"]]
            drawn = [(x, y) for x, y in known if y is not None]
            (handle,) = axes.plot(
                *zip(*drawn, strict=True), color=colour, linestyle=dashes, marker=".", linewidth=1.2
            )
            handles[variant_label(content["answers"], answer)] = handle
            if answer["knee"] is not None:
                axes.axvline(answer["at"], color=colour, linewidth=0.8, alpha=0.5)
        if content["objectives"] and (limit := content["answers"][0]["curve"][0]["objectives"][place]["limit"]):
            axes.axhline(limit, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set_yscale("log")
            for ticks in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
                ticks(FuncFormatter(lambda seconds, _: duration(seconds)))
            axes.tick_params(which="both", labelsize=style.SMALL, color=style.FAINT, labelcolor=style.STRONG)
        axes.set_xlabel(
            "replicas" if content["find"] == "replicas" else "requests/s", fontsize=style.SMALL, color=style.STRONG
        )
    if len(handles) > 1:
        style.legend(
            figure, list(handles.values()), list(handles), loc="outside lower center", ncols=min(len(handles), 4)
        )
    return figure


def _height(point: Content, place: int) -> float | None:
    if not point["objectives"]:
        return float(point["occupancy"])
    objective = point["objectives"][place]
    value = objective["value"] if objective["value"] is not None else objective["late"]
    return None if value is None else float(value)

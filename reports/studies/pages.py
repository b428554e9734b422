"""Internal fragmentation of the KV cache and its cost, over the page size.

Theory: the last page of a sequence is half empty on average, so pages of P positions waste (P - 1) / 2 per sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from reports.figures import style
from reports.statistics.intervals import Estimate, mean
from reports.studies import panel

if TYPE_CHECKING:
    import pandas as pd

SIZE = "engine_page_size"


def waste(frame: pd.DataFrame) -> dict[int, Estimate]:
    """The share of held token positions without a token, by page size: the mean over the seeds, with its interval."""
    lost = 1 - frame["pages_mean_live_fraction"]
    return {int(size): mean(group.to_numpy(float)) for size, group in lost.groupby(frame[SIZE])}


def theory(frame: pd.DataFrame) -> dict[int, float]:
    """The same by theory, from the mean live positions per sequence of the runs with pages of one position."""
    single = frame[frame[SIZE] == 1]
    running = (single["slot_seconds_decode"] + single["slot_seconds_prefill"]) / single["makespan_s"]
    each = float((single["pages_mean_used"] / running).mean())
    return {int(size): ((size - 1) / 2) / (each + (size - 1) / 2) for size in sorted(frame[SIZE].unique())}


def draw(frame: pd.DataFrame) -> Figure:
    """Waste, simulated and by theory, mean TTFT, and preemptions over the page size, in a panel each."""
    figure = style.figure(9.5, 3.1)
    lost, wait, evicted = figure.subplots(1, 3)
    panel.label(lost, "waste", "", "page size, positions", "held positions without a token, %")
    line = panel.line(lost, 0, [(size, each) for size, each in waste(frame).items()], 100)
    (marks,) = lost.plot(
        list(theory(frame)),
        [100 * each for each in theory(frame).values()],
        color=style.FAINT,
        linestyle="none",
        marker="x",
    )
    style.legend(lost, [line, marks], ["simulated", "(P - 1) / 2 a sequence"], loc="upper left")
    panel.label(wait, "mean TTFT", "", "page size, positions", "seconds")
    panel.line(wait, 1, list(panel.over_seeds(frame, SIZE, "ttft_s_mean").items()))
    panel.label(evicted, "preemptions", "", "page size, positions", "in 1,000 requests")
    thousand = frame.assign(each=1000 * frame["preemptions"] / frame["requests_injected"])
    panel.line(evicted, 2, list(panel.over_seeds(thousand, SIZE, "each").items()))
    sizes = sorted(int(size) for size in frame[SIZE].unique())
    for axes in (lost, wait, evicted):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_ylim(bottom=0)
    return figure


def lines(frame: pd.DataFrame) -> list[str]:
    """Waste, theory, mean TTFT and preemptions, a line per page size."""
    expected, simulated = theory(frame), waste(frame)
    ttft = panel.over_seeds(frame, SIZE, "ttft_s_mean")
    evicted = panel.over_seeds(frame, SIZE, "preemptions")
    grown = frame["queue_grows"].astype(float).groupby(frame[SIZE]).mean()
    return [
        f"pages of {size:3}: {each.value:5.1%} waste (theory {expected[size]:5.1%}), "
        f"mean TTFT {ttft[size].value:.2f} s, {evicted[size].value:.0f} preemptions"
        + ("  unstable" if grown[size] >= 0.5 else "")
        for size, each in simulated.items()
    ]

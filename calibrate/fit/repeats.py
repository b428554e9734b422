"""Repeated runs of one setting: their differences are the noise from run to run, which a single run cannot show.

Two runs are of one setting where the same prompts were sent in the same order at the same rate, and as many tokens
came back. Their differences are taken for the noise of every run, of whatever setting: all statistics of latency
together, as they varied together. Few runs say little of its size, so draws are of Student's t.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from calibrate.arrays import Floats
from calibrate.fit.measured_run import MeasuredRun, statistics

ALIKE = 0.1
"""Spans of sending and output tokens of one setting differ by no more than this share."""
FEWEST = 20
"""Requests that two runs need in common."""


@dataclass(frozen=True)
class Repeats:
    """Runs of one setting, and by how much the highest mean of each metric among them is above the lowest."""

    runs: tuple[str, ...]
    spread: Mapping[str, float]

    def line(self) -> str:
        """The same as a sentence."""
        told = ", ".join(f"{name.removesuffix('_s').upper()} by {share:.0%}" for name, share in self.spread.items())
        return f"{' and '.join(self.runs)}: runs of one setting, whose means differ in {told}"


@dataclass(frozen=True)
class Noise:
    """The differences between runs of one setting.

    repeats    the settings that were run more than once
    contrasts  independent differences between such runs, each of the size of one run's noise: by metric, of the
               logarithms of `calibrate.fit.measured_run.STATISTICS`, shape (statistics,)
    runs       how many runs there are in all
    """

    repeats: tuple[Repeats, ...]
    contrasts: tuple[Mapping[str, Floats], ...]
    runs: int

    def lines(self) -> list[str]:
        """What is known of the noise from run to run, a sentence each."""
        few = len(self.contrasts)
        if few:
            many = "1 repetition" if few == 1 else f"{few} repetitions"
            told = f"noise from run to run: in the intervals, as far as {many} can tell it"
            return [*(each.line() for each in self.repeats), told]
        runs = "one run" if self.runs == 1 else f"{self.runs} runs, each of another setting,"
        return [
            f"{runs} cannot tell how much the same run would differ the next time, and the intervals do not hold it: "
            "run a setting again, or log the engine's steps (from-steps)"
        ]

    def draws(self, lot: np.random.Generator) -> Iterator[Mapping[str, Floats]]:
        """What could be added to the log statistics of each run in turn; nothing if there are no repeats."""
        many = len(self.contrasts)
        scale = np.sqrt(1 / lot.chisquare(many)) if many else 0.0
        for _ in range(self.runs):
            moved = dict[str, Floats]()
            for share, contrast in zip(scale * lot.standard_normal(many), self.contrasts, strict=True):
                for name, of in contrast.items():
                    moved[name] = moved.get(name, 0.0) + share * of
            yield moved


def noise(runs: Sequence[MeasuredRun], first: int) -> Noise:
    """The noise from run to run in these runs, by the first requests of each (`MeasuredRun.settled`)."""
    repeats, contrasts = list[Repeats](), list[Mapping[str, Floats]]()
    for group in settings(runs):
        found = of_setting(group, first) if len(group) > 1 else {}
        if found:
            spread = {name: float(of[:, 0].max() / of[:, 0].min()) - 1 for name, of in found.items()}
            repeats.append(Repeats(tuple(run.name for run in group), spread))
            contrasts += [
                {name: contrast(np.log(of[: place + 1])) for name, of in found.items()}
                for place in range(1, len(group))
            ]
    return Noise(tuple(repeats), tuple(contrasts), len(runs))


def of_setting(group: Sequence[MeasuredRun], first: int) -> dict[str, Floats]:
    """Statistics of each metric over the requests that all runs of a setting have in common, a row for each run."""
    frames = [run.settled(min(first, run.requests)).set_index("rank") for run in group]
    ranks = reduce(lambda one, other: one.intersection(other), (frame.index for frame in frames))
    found = dict[str, Floats]()
    for name in group[0].known:
        values = [frame.loc[ranks, name].to_numpy(np.float64) for frame in frames]
        values = [each[each > 0] for each in values]
        if min(map(len, values)) >= FEWEST:
            found[name] = np.array([statistics(each) for each in values])
    return found


def contrast(rows: Floats) -> Floats:
    """The mean of all rows but the last, less the last, as spread as a single row is."""
    before = len(rows) - 1
    scaled: Floats = np.sqrt(before / len(rows)) * (rows[:-1].mean(axis=0) - rows[-1])
    return scaled


def settings(runs: Sequence[MeasuredRun]) -> list[list[MeasuredRun]]:
    """The runs by setting, both in their order."""
    found = list[list[MeasuredRun]]()
    for run in runs:
        group = next((group for group in found if same_setting(group[0], run)), None)
        if group is None:
            found.append([run])
        else:
            group.append(run)
    return found


def same_setting(one: MeasuredRun, other: MeasuredRun) -> bool:
    """Whether two runs sent the same prompts in the same order at the same rate, and got as many tokens."""
    if one.requests != other.requests or one.known != other.known:
        return False
    both = one.measured.merge(other.measured, on="rank", suffixes=("", "_again"))
    if len(both) < FEWEST or (both["prompt"] != both["prompt_again"]).any():
        return False
    return all(
        abs(amount(both, "") - amount(both, "_again")) <= ALIKE * max(amount(both, ""), amount(both, "_again"))
        for amount in (outputs, span)
    )


def outputs(frame: pd.DataFrame, end: str) -> float:
    """Tokens that came back."""
    return float(frame["output" + end].sum())


def span(frame: pd.DataFrame, end: str) -> float:
    """Seconds from the first sending to the last."""
    sent = frame["sent_s" + end]
    return float(sent.max() - sent.min())

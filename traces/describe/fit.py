"""A synthetic workload with the statistics of a trace, and how far it is from it.

Lengths: the simplest of a constant, a lognormal and a law of few quantiles that is close enough; prompts and
outputs go together as their ranks do. Arrivals: the trace's own rate in pieces, cut where it changed by more
than chance, and within the pieces gamma-distributed gaps whose coefficient of variation is tuned until the
counts per second scatter as the trace's do; seen on ticks if the trace's clock is coarse. At once if it has none.

What it does not know: tenants, sessions, shared prefixes, and that long requests may follow each other. The
law is of one tenant and of independent requests; `Fitted.left_out` says what was there.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.accounting.rates import over_span
from sim.request import SECOND
from traces.describe import statistics
from traces.errors import BadInput
from traces.synthetic.arrivals import Arrivals, Clock, Ticks
from traces.synthetic.empirical_lengths import Quantiles
from traces.synthetic.generator import drawn_together
from traces.synthetic.lengths import Fixed, Lognormal
from traces.synthetic.modulated import Piece, Piecewise
from traces.synthetic.parser import ARRIVALS, LENGTHS
from traces.synthetic.streams import Stream
from traces.synthetic.token_counts import Length

Integers = NDArray[np.int64]
MOST_PIECES = 128
FEWEST_IN_PIECE = 10
BY_CHANCE = 1.63
MOST_KNOTS = 48
GRID = 20_000
CLOSE = 0.004
BY_SAMPLING = 1.5
CLOSE_POINT = 0.03
CV_RANGE = (0.05, 50.0)
TRIALS = 14
TUNED_ON = 300_000
JUDGED_BY = 1_000_000
RANKED = 100_000
POINTS = (0.5, 0.99)


@dataclass(frozen=True)
class Distance:
    """One statistic of the trace and of the law; `relative` is their difference over the trace's."""

    name: str
    trace: float
    law: float

    @property
    def relative(self) -> float:
        return (self.law - self.trace) / self.trace if self.trace else math.inf if self.law else 0.0


@dataclass(frozen=True)
class Fitted:
    """A workload as a scenario writes it (durations in ns), its distance from the trace, and what is not in it."""

    workload: dict[str, Any]
    distances: list[Distance]
    left_out: list[str]


def fit(frame: pd.DataFrame, seed: int = 0) -> Fitted:
    """The law of a workload frame, judged by a million draws under `seed`.

    Without arrivals the law's are `at_once`. Raises BadInput for a frame without outputs, or of fewer than two
    requests or no time between.
    """
    if "output" not in frame:
        raise BadInput("has no output lengths; a workload can be fitted only to both lengths")
    prompts, outputs = (frame[name].to_numpy(np.int64) for name in ("prompt", "output"))
    if len(prompts) < 2:
        raise BadInput(f"{len(prompts)} request; expected at least two at different times")
    judge = Stream(seed, "fit/judging")
    arrivals, distances = fitted_arrivals(frame, seed, judge)
    prompt, output = length_law(prompts), length_law(outputs)
    ranks = statistics.rank_correlation(prompts, outputs)
    correlation = None if ranks is None else round(2 * math.sin(math.pi * ranks / 6), 4)
    workload: dict[str, Any] = {
        "requests": len(prompts),
        "arrivals": arrivals,
        "prompt": written(prompt),
        "output": written(output),
    }
    if correlation is not None:
        workload["correlation"] = correlation
    drawn = drawn_together(prompt, output, correlation, judge, JUDGED_BY)
    distances += length_distances("prompt", prompts, drawn[0]) + length_distances("output", outputs, drawn[1])
    if ranks is not None:
        distances.append(
            Distance(
                "rank correlation", ranks, statistics.rank_correlation(*(each[:RANKED] for each in drawn)) or 0.0
            )
        )
    return Fitted(workload, distances, left_out(frame))


def fitted_arrivals(frame: pd.DataFrame, seed: int, judge: Stream) -> tuple[dict[str, Any] | str, list[Distance]]:
    """The law of a frame's arrivals as a scenario writes it, and its distances."""
    if "arrival_ns" not in frame:
        return "at_once", []
    times = frame["arrival_ns"].to_numpy(np.int64)
    if times[0] == times[-1]:
        raise BadInput(f"{len(times)} requests arrive at once; expected different times")
    law = arrival_law(times - times[0], Stream(seed, "fit/tuning"))
    return written(law), time_distances(times - times[0], first_arrivals(law, judge, JUDGED_BY), law.rate)


def length_law(values: Integers) -> Length:
    """The simplest law close to `values`: all equal, lognormal, or quantiles."""
    if values.min() == values.max():
        return Fixed(int(values[0]))
    logs = np.log(values)
    normal = Lognormal(round(float(values.mean()), 3), sigma=round(float(logs.std()), 4))
    return normal if is_close(normal, values) else quantiles(values)


def is_close(law: Length, values: Integers) -> bool:
    """Whether the law's quantile function is near the values', and its median and p99 are within 3%.

    Near: on average within 0.4% of the mean, or within 1.5 standard errors of it.
    """
    shares, wanted = grid(values)
    found = law.quantile(shares)
    off = [abs(np.interp(p, shares, found) / np.interp(p, shares, wanted) - 1) for p in POINTS]
    near = max(CLOSE * wanted.mean(), BY_SAMPLING * wanted.std() / math.sqrt(len(values)))
    return bool(np.abs(found - wanted).mean() <= near and max(off) <= CLOSE_POINT)


def quantiles(values: Integers) -> Quantiles:
    """The values' quantile function in straight pieces: split where most area is missed, until little is.

    Ends when the area between the two is 0.4% of the mean, or 48 knots.
    """
    shares, wanted = grid(values)
    shares = np.concatenate([[0.0], shares, [1.0]])
    wanted = np.concatenate([[values.min()], wanted, [values.max()]])

    def miss(start: int, end: int) -> tuple[float, int]:
        off = np.abs(chord(shares, wanted, start, end) - wanted[start : end + 1])
        return float(off.sum()), start + int(off.argmax())

    middle, high = (int(np.searchsorted(shares, p)) for p in POINTS)
    enough = CLOSE * wanted.mean() * len(shares)
    knots = split([0, middle, high, len(shares) - 1], miss, MOST_KNOTS, lambda misses: sum(misses) <= enough)
    return Quantiles(
        tuple(round(float(shares[k]), 6) for k in knots), tuple(round(float(wanted[k]), 2) for k in knots)
    )


def split(
    knots: list[int],
    miss: Callable[[int, int], tuple[float, int]],
    most: int,
    done: Callable[[Sequence[float]], bool],
) -> list[int]:
    """More `knots`, in order: the piece that misses most is split, until `done` or there are `most`.

    `miss(start, end)` says how much a straight piece misses, and where to split it.
    """
    knots = sorted(set(knots))
    pieces = [(-miss(start, end)[0], start, end) for start, end in pairwise(knots)]
    heapq.heapify(pieces)
    while len(knots) < most and not done([-piece[0] for piece in pieces]):
        _, start, end = heapq.heappop(pieces)
        middle = miss(start, end)[1]
        if middle in (start, end):
            break
        knots.append(middle)
        for part in ((start, middle), (middle, end)):
            heapq.heappush(pieces, (-miss(*part)[0], *part))
    return sorted(knots)


def chord(x: NDArray[np.float64], y: NDArray[np.float64], start: int, end: int) -> NDArray[np.float64]:
    """The straight line from the point `start` to the point `end`, at the points in between and both."""
    return np.interp(x[start : end + 1], x[[start, end]], y[[start, end]])


def grid(values: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares in the middle of equal steps, at most 20,000, and the values at them; median and p99 among them."""
    n = min(len(values), GRID)
    shares = (np.arange(n) + 0.5) / n
    found = np.sort(values)[(shares * len(values)).astype(np.int64)].astype(np.float64)
    for point in POINTS:
        value = np.percentile(values, 100 * point)
        below, above = shares < point, shares > point
        found = np.concatenate([np.minimum(found[below], value), [value], np.maximum(found[above], value)])
        shares = np.concatenate([shares[below], [point], shares[above]])
    return shares, found


def arrival_law(times: Integers, stream: Stream) -> Arrivals:
    """A law for arrivals that count from the first: rates by piece, gaps tuned to the dispersion per second."""
    pieces = rate_pieces(times)
    step = statistics.tick(times)

    def law(cv: float) -> Arrivals:
        inside = Piecewise(pieces, round(cv, 4))
        return Ticks(inside, step[0]) if step else inside

    wanted = statistics.dispersion(times)
    return law(1.0) if wanted is None else law(tuned(law, wanted, stream))


def rate_pieces(times: Integers) -> tuple[Piece, ...]:
    """The trace's rates, in as few pieces as it takes: at most 128, of ten or more requests in the mean.

    A piece is split where the count of arrivals is farthest from a straight line, as long as that is farther
    than the square root of the piece's arrivals would have it by chance (Kolmogorov and Smirnov's 1%).
    """
    instants, before = np.unique(times, return_index=True)
    when = np.append(instants, times[-1] + 1).astype(np.float64)
    count = np.append(before, len(times)).astype(np.float64)

    def miss(start: int, end: int) -> tuple[float, int]:
        off = np.abs(chord(when, count, start, end) - count[start : end + 1])
        return float(off.max() / math.sqrt(count[end] - count[start])), start + int(off.argmax())

    most = max(1, min(MOST_PIECES, len(times) // FEWEST_IN_PIECE))
    knots = split([0, len(when) - 1], miss, most + 1, lambda misses: max(misses) <= BY_CHANCE)
    return tuple(
        Piece(
            float(f"{(count[end] - count[start]) / (when[end] - when[start]) * SECOND:.7g}"),
            int(when[end] - when[start]),
        )
        for start, end in pairwise(knots)
    )


def tuned(law: Callable[[float], Arrivals], wanted: float, stream: Stream) -> float:
    """The gaps' CV at which counts per second of `law(cv)` have the dispersion `wanted`, by bisection.

    Every trial draws from the same stream. At the end of the range if the dispersion cannot be reached.
    """
    low, high = (math.log(cv) for cv in CV_RANGE)
    for _ in range(TRIALS):
        middle = (low + high) / 2
        found = statistics.dispersion(first_arrivals(law(math.exp(middle)), stream, TUNED_ON))
        low, high = (middle, high) if found is not None and found < wanted else (low, middle)
    return math.exp((low + high) / 2)


def first_arrivals(law: Arrivals, stream: Stream, n: int) -> Integers:
    """The first `n` arrivals of the law, in ns."""
    clock = Clock(law, law.rate, stream / "arrivals")
    horizon = int(n / law.rate * SECOND)
    while len(times := clock.until(horizon)) < n:
        horizon += horizon // 8 + 1
    return times[:n]


def time_distances(times: Integers, drawn: Integers, rate: float) -> list[Distance]:
    """Of rate, CV of the gaps, and dispersion per 1, 10 and 60 seconds where the trace has them."""
    found = [Distance("rate /s", over_span(times) or 0.0, rate)]
    pairs = [("CV of gaps", statistics.gap_cv(times), statistics.gap_cv(drawn))]
    for window in statistics.WINDOWS[1:]:
        mine, law = (statistics.dispersion(sample, window) for sample in (times, drawn))
        pairs.append((f"dispersion per {window // SECOND} s", mine, law))
    return found + [Distance(name, mine, law) for name, mine, law in pairs if mine is not None and law is not None]


def length_distances(name: str, values: Integers, drawn: Integers) -> list[Distance]:
    """Of mean, median and 99th percentile."""
    both = ((values.mean(), drawn.mean()), *zip(*(np.percentile(v, [50, 99]) for v in (values, drawn)), strict=True))
    return [
        Distance(f"{name} {what}", float(mine), float(law))
        for what, (mine, law) in zip(("mean", "p50", "p99"), both, strict=True)
    ]


def left_out(frame: pd.DataFrame) -> list[str]:
    """What the trace tells and the law does not have."""
    lines = []
    if "arrival_ns" not in frame:
        lines.append("arrivals: the trace has none, and those of the law are all at once, for clients that use none")
    if "tenant" in frame and (tenants := frame["tenant"].nunique()) > 1:
        lines.append(f"{tenants} tenants: the law is of one")
    if "session" in frame and frame["session"].notna().any():
        lines.append(f"{frame['session'].nunique()} sessions: requests of the law are independent")
    if "blocks" in frame or "tokens" in frame:
        lines.append("what the prompts say: those of the law share nothing")
    if "max_output" in frame and frame["max_output"].notna().any():
        lines.append("declared limits: those of the law are the outputs")
    return lines


def written(law: object) -> dict[str, Any]:
    """A law as a scenario writes it: its name and its options, durations in ns."""
    names = {kind: name for name, kind in (ARRIVALS | LENGTHS).items()}
    if isinstance(law, Ticks):
        return {"ticks": {"arrivals": written(law.arrivals), "every": law.every}}
    options = {name: value for name, value in asdict(law).items() if value is not None}  # type: ignore[call-overload]
    return {names[type(law)]: {name: listed(value) for name, value in options.items()}}


def listed(value: Any) -> Any:
    """Tuples as lists, at the first level."""
    return list(value) if isinstance(value, tuple) else value

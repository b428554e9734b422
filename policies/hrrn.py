"""Highest response ratio next: the request with the largest (waited + service) / service goes first.

Short requests go early, and a long one's ratio grows until it goes too: shortest job first that starves nobody,
without a cap to choose (Brinch Hansen's "Operating System Principles", 1973, has the analysis). Waits of the
short are longer than under shortest job first, and it needs predictions as that does.

Service is the predicted output. As ratios are compared, the time that a token takes drops out: the order is that
of waited / predicted. Predictions count in thousandths of a token, so that the instants at which one request
passes another are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from policies.entry import Entry
from policies.history import History
from policies.predict import Exact, Predictor, predictor
from policies.predicted import OPTIONS, name_of_predictor
from policies.wrapper import sooner
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence

PARTS = 1000
"""Of a token, in which predictions are counted; none is less than one of them."""

Place = tuple[Nanoseconds, int, Sequence]


class HighestResponseRatio(Order):
    """By waited / predicted, the largest first; at a tie by arrival.

    Those of one prediction are in order of arrival always, so only the first of each prediction is compared.
    """

    def __init__(self, predict: Predictor = Exact()) -> None:  # noqa: B008
        self.predict = predict
        self.counts_service = isinstance(predict, History)
        self.waiting: dict[int, int] = {}  # predictions of everyone who waits, in parts of a token
        self.lines: dict[int, list[Place]] = {}  # by prediction, heaps by arrival; some may have left

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join those with the same prediction."""
        service = max(1, round(PARTS * self.predict(seq.request)))
        self.waiting[seq.index] = service
        heappush(self.lines.setdefault(service, []), (seq.request.arrival, seq.index, seq))

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join again; what it waited and ran before counts as waiting."""
        self.push(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave; the place in line is dropped when it comes to the front."""
        del self.waiting[seq.index]

    def firsts(self) -> Iterator[tuple[int, Place]]:
        """(prediction, place) of the first in line of every prediction."""
        for service, line in list(self.lines.items()):
            while line and self.waiting.get(line[0][1]) != service:
                heappop(line)
            if line:
                yield service, line[0]
            else:
                del self.lines[service]

    def best(self, now: Nanoseconds) -> tuple[int, Place]:
        """The first in line with the highest ratio now."""
        firsts = self.firsts()
        service, place = next(firsts)
        for other_service, other in firsts:
            ahead = (now - other[0]) * service - (now - place[0]) * other_service
            if ahead > 0 or (ahead == 0 and other[:2] < place[:2]):
                service, place = other_service, other
        return service, place

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The highest ratio."""
        return self.best(now)[1][2]

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the first of the shorter ones passes the head: from there on its ratio is the larger, or as large."""
        service, place = self.best(now)
        until: Nanoseconds | None = None
        for shorter, (arrival, _, _) in self.firsts():
            if shorter < service:
                meets = -(-(arrival * service - place[0] * shorter) // (service - shorter))
                until = sooner(until, max(meets, now + 1))
        return until, None

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        places = (place for line in self.lines.values() for place in line)
        present = {index: (arrival, index, seq) for arrival, index, seq in places if index in self.waiting}
        return (seq for _, _, seq in sorted(present.values()))

    def left(self, seq: Sequence, step: int) -> None:
        """A request ended: a predictor that learns hears of it."""
        if isinstance(self.predict, History):
            self.predict.ended(seq)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor that the options ask for. Raises ValueError for options that ask for none."""
    return HighestResponseRatio(predictor(predict, error, seed))


ENTRY = Entry(
    "The largest (waited + predicted) / predicted first.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Brinch Hansen, Operating System Principles, 1973",
)

"""Highest response ratio next: the request with the largest (waited + service) / service goes first.

Short requests go early, and the ratio of a long one grows until it goes too: shortest job first without starvation
and without a cap to choose (analysed in Brinch Hansen, "Operating System Principles", 1973). Short requests wait
longer than under shortest job first, and predictions are needed as well.

Service is the predicted output. In a comparison of ratios the time per token cancels, so the order is that of
waited / predicted. Predictions are rounded to thousandths of a token, so that the instant at which one request passes
another is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from policies.base.entry import Entry
from policies.base.predicted_order import OPTIONS, name_of_predictor
from policies.predictors.base import Exact, Predictor
from policies.predictors.learned import LearnedPredictor
from policies.predictors.registry import predictor
from sim.policy.base import Order
from sim.policy.listener import Listener
from sim.policy.wrapper import sooner
from sim.request import Nanoseconds
from sim.sequence import Sequence

PARTS = 1000
"""Predictions are whole multiples of 1/PARTS of a token, at least one."""

Place = tuple[Nanoseconds, int, Sequence]


class HighestResponseRatio(Order, Listener):
    """By waited / predicted, the largest first; ties by arrival.

    Requests with equal predictions are always in order of arrival, so only the first of each prediction is compared.
    """

    def __init__(self, predict: Predictor = Exact()) -> None:  # noqa: B008
        self.predict = predict
        if isinstance(predict, LearnedPredictor):
            self.listeners = (self,)
        self.waiting: dict[int, int] = {}  # predictions of all waiting sequences, in parts of a token
        self.queues: dict[int, list[Place]] = {}  # by prediction, heaps by arrival; some sequences may have left

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the sequences with the same prediction."""
        service = max(1, round(PARTS * self.predict(seq.request)))
        self.waiting[seq.index] = service
        heappush(self.queues.setdefault(service, []), (seq.request.arrival, seq.index, seq))

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join again; all time since its arrival counts as waiting."""
        self.push(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave; the heap entry is dropped when it reaches the top."""
        del self.waiting[seq.index]

    def firsts(self) -> Iterator[tuple[int, Place]]:
        """(prediction, place) of the first sequence of every prediction."""
        for service, queue in list(self.queues.items()):
            while queue and self.waiting.get(queue[0][1]) != service:
                heappop(queue)
            if queue:
                yield service, queue[0]
            else:
                del self.queues[service]

    def best(self, now: Nanoseconds) -> tuple[int, Place]:
        """The prediction and place of the highest ratio at `now`."""
        firsts = self.firsts()
        service, place = next(firsts)
        for other_service, other in firsts:
            ahead = (now - other[0]) * service - (now - place[0]) * other_service
            if ahead > 0 or (ahead == 0 and other[:2] < place[:2]):
                service, place = other_service, other
        return service, place

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The sequence with the highest ratio."""
        return self.best(now)[1][2]

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the ratio of a shorter request first reaches that of the head."""
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
        places = (place for queue in self.queues.values() for place in queue)
        present = {index: (arrival, index, seq) for arrival, index, seq in places if index in self.waiting}
        return (seq for _, _, seq in sorted(present.values()))

    def left(self, seq: Sequence, step: int) -> None:
        """Notify a predictor that learns."""
        if isinstance(self.predict, LearnedPredictor):
            self.predict.ended(seq)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor given. Raises ValueError for an impossible option."""
    return HighestResponseRatio(predictor(predict, error, seed))


ENTRY = Entry(
    "The largest (waited + predicted) / predicted first.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Brinch Hansen, Operating System Principles, 1973",
)

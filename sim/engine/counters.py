"""What the state of an engine counts: totals over the running sequences, those that leave, admissions.

Each has one writer: `Totals` and `Leaving` the state (`sim.engine.state`), `Admissions` the pass over the queue
(`sim.engine.admission`).
"""

from __future__ import annotations

from sim.sequence import Sequence


class Totals:
    """Sums over all running sequences.

    over      how many have all their tokens
    computed  their computed positions
    reach     the positions that they may come to hold
    touched   pages with a computed position, where pages are reserved
    swapping  positions to be copied to or from the host with the next step
    """

    __slots__ = ("computed", "over", "reach", "swapping", "touched")

    def __init__(self) -> None:
        self.over = self.computed = self.reach = self.touched = self.swapping = 0

    def swap(self, positions: int) -> None:
        """So many positions more are copied to or from the host with the next step."""
        self.swapping += positions

    def swapped(self) -> int:
        """The positions that the step being planned copies to and from the host; none is left to be copied."""
        positions, self.swapping = self.swapping, 0
        return positions


class Leaving:
    """Sequences that have ended, or are about to leave.

    finished   committed as ended since the last plan
    riding     finished, and part of one step more (evict "after")
    abandoned  running, and given up by their clients since the last plan
    departed   ended, and not yet reported to the driver
    """

    __slots__ = ("abandoned", "departed", "finished", "riding")

    def __init__(self) -> None:
        self.finished: list[Sequence] = []
        self.riding: list[Sequence] = []
        self.abandoned: list[Sequence] = []
        self.departed: list[Sequence] = []

    def evicted(self, late: bool) -> list[Sequence]:
        """The sequences that leave with this plan: those that finished, or with late eviction rode one step more."""
        leaving, self.finished = self.finished, []
        if late:
            leaving, self.riding = self.riding, leaving
        return leaving

    def given_up(self) -> list[Sequence]:
        """The running sequences whose clients have given up since the last plan."""
        abandoned, self.abandoned = self.abandoned, []
        return abandoned

    def reported(self) -> list[Sequence]:
        """The sequences that have ended since the last call, in order."""
        departed, self.departed = self.departed, []
        return departed

    def reset(self) -> None:
        """No sequence runs any more."""
        self.finished, self.riding, self.abandoned = [], [], []


class Admissions:
    """What admissions leave behind.

    count         how many sequences have been admitted
    closed_until  the first step whose plan may admit again
    width         positions per row of a contiguous cache
    filled        prefills whose pages are to enter a cache that takes them late: (sequence, its admission number,
                  positions)
    waited        steps for which prompts that fit have waited for more of them; not those of the run that began with
                  step `held_at`, -1 if that is over
    held_until    the first step whose plan lets them go
    """

    __slots__ = ("closed_until", "count", "filled", "held_at", "held_until", "waited", "width")

    def __init__(self) -> None:
        self.filled: list[tuple[Sequence, int, int]] = []
        self.count = self.closed_until = self.width = self.waited = self.held_until = 0
        self.held_at = -1

    def hold(self, step: int, most: int) -> bool:
        """Have prompts wait in step number `step`, for `most` steps in all; False if that is over."""
        if self.waited >= most:
            return False
        self.held_at = step
        self.held_until = step + most - self.waited
        return True

    def count_waiting(self, step: int) -> None:
        """Step number `step` is planned: those before it that were held count."""
        if self.held_at >= 0:
            self.waited += step - self.held_at
            self.held_at = -1

    def let_go(self) -> None:
        """Prompts wait no longer."""
        self.waited = self.held_until = 0
        self.held_at = -1

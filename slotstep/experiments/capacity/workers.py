"""The processes that make the runs of a capacity search, shared by the searches of all its variants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from slotstep.experiments import interrupts
from traces.errors import BadInput

Call = tuple[Any, ...]
Item = TypeVar("Item")
Made = TypeVar("Made")


class Workers:
    """Makes calls on `jobs` processes (all cores if None); with one, in this process.

    name   distinguishes this search from others that the same processes have worked for
    ended  whether the processes were killed because the command was interrupted
    """

    def __init__(self, jobs: int | None) -> None:
        self.name = token_hex(8)
        self.jobs = joblib.cpu_count() if jobs is None else jobs
        self.ended = False

    def call(self, function: Callable[..., Made], calls: Iterable[Call]) -> list[Made]:
        """The results of these calls, in their order. Raises BadInput for a worker that was killed."""
        if self.jobs == 1:
            return [function(*call) for call in calls]
        if self.ended:
            raise KeyboardInterrupt
        try:
            with interrupts.held_back():
                executor = get_reusable_executor(max_workers=self.jobs)
                futures = [executor.submit(function, *call) for call in calls]
            return [future.result() for future in futures]
        except TerminatedWorkerError:
            raise BadInput("a worker was killed, perhaps for want of memory; try fewer --jobs") from None
        except KeyboardInterrupt:
            self.end()
            raise

    def each(self, search: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """The results of `search` for these items, in their order; searches go on at once and share the processes."""
        given = list(items)
        if self.jobs == 1 or len(given) == 1:
            return [search(item) for item in given]
        with ThreadPoolExecutor(len(given)) as threads:
            try:
                return list(threads.map(search, given))
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        """Kill the processes."""
        self.ended = True
        get_reusable_executor(max_workers=self.jobs).shutdown(kill_workers=True)

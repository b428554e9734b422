"""The backends of a sweep: processes of this machine, a Dask cluster or a Ray cluster.

A backend takes calls lazily, a few more than it can work on, and yields results as they end. Results are written by
this process only: workers share no file system except for traces.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from sim import kernel
from slotstep.experiments import interrupts
from traces.errors import BadInput

Call = tuple[Any, ...]
Backend = Callable[[Callable[..., Any], Iterable[Call], str | None, int | None], Iterator[Any]]


def compute(
    function: Callable[..., Any], calls: Iterable[Call], backend: str, address: str | None, jobs: int | None
) -> Iterator[Any]:
    """The results of `function` for each call's arguments, as they end.

    jobs     calls at once; all cores if None
    address  of a cluster's scheduler

    Raises BadInput for an unknown backend, one that is not installed or does not answer, an address that is missing
    or not used, and for a worker that was killed.
    """
    if backend not in BACKENDS:
        raise BadInput(f"--backend {backend}: expected one of {', '.join(BACKENDS)}")
    if backend == "local" and address is not None:
        raise BadInput(f"--address {address}: local processes have none; expected --backend dask or ray")
    if backend != "local" and address is None:
        raise BadInput(f"--backend {backend}: expected --address of its scheduler beside it")
    packed = ((kernel.chosen(), pickle.dumps((function, call))) for call in calls)
    yield from BACKENDS[backend](on_kernel, packed, address, jobs)


def on_kernel(choice: str, packed: bytes) -> Any:
    """Call a pickled function in a worker: on the kernel chosen here, before its modules are imported there.

    Raises KernelError for `compiled` where the worker has none.
    """
    kernel.choose(choice)
    function, call = pickle.loads(packed)
    return function(*call)


def parallel(function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[Any]:
    """As `compute` on joblib's active backend; without joblib's warning if the caller stops early."""
    work = joblib.Parallel(return_as="generator_unordered", batch_size=1)
    results = None
    try:
        with interrupts.held_back():
            results = work(joblib.delayed(function)(*call) for call in calls)
        for result in results:  # noqa: UP028 - so that this generator is closed before the other
            yield result
    finally:
        if results is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def on_processes(
    function: Callable[..., Any], calls: Iterable[Call], _: str | None, jobs: int | None
) -> Iterator[Any]:
    """On processes of this machine; with one job, on this one."""
    with joblib.parallel_config("loky", n_jobs=joblib.cpu_count() if jobs is None else jobs):
        try:
            yield from parallel(function, calls)
        except TerminatedWorkerError:
            raise BadInput(
                "a worker was killed, perhaps for want of memory; try fewer --jobs. The runs that have ended are kept"
            ) from None


def on_dask(
    function: Callable[..., Any], calls: Iterable[Call], address: str | None, jobs: int | None
) -> Iterator[Any]:
    """On the Dask cluster whose scheduler has this address."""
    distributed = installed("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"--address {address}: no Dask scheduler answers: {error}") from None
    with client, joblib.parallel_config("dask", n_jobs=-1 if jobs is None else jobs, client=client):
        yield from parallel(function, calls)


def on_ray(
    function: Callable[..., Any], calls: Iterable[Call], address: str | None, jobs: int | None
) -> Iterator[Any]:
    """On the Ray cluster of this address; `local` starts one on this machine and ends it afterwards."""
    ray = installed("ray", "ray")
    try:
        ray.init(address, num_cpus=jobs if address == "local" else None, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError) as error:
        raise BadInput(f"--address {address}: no Ray cluster answers: {error}") from None
    try:
        remote = ray.remote(function)
        waiting = iter(calls)
        window = 2 * (int(ray.cluster_resources().get("CPU", 1)) if jobs is None else jobs)
        running = [remote.remote(*call) for call in islice(waiting, window)]
        while running:
            (ended,), running = ray.wait(running)
            running += [remote.remote(*call) for call in islice(waiting, 1)]
            yield ray.get(ended)
    finally:
        ray.shutdown()


def installed(module: str, backend: str) -> Any:
    """A module of an extra. Raises BadInput if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise BadInput(f"--backend {backend}: not installed; pip install 'slotstep[{backend}]'") from None


BACKENDS: dict[str, Backend] = {"local": on_processes, "dask": on_dask, "ray": on_ray}

"""Times one case: here, or in a new process so that the peak of memory is its own.

As a program (`python -m benchmarks.measure CASE REPEATS`, the case as JSON) it prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.cases import COST, Case, EngineName, scheduler
from sim.accounting.metrics import summary
from sim.request import Request
from sim.service.cluster import simulate

ROOT = Path(__file__).parent.parent
WARM_UP = Case(requests=100, rate=20, outputs="fixed 128")


@dataclass(frozen=True)
class Run:
    """One run: CPU seconds of the simulation and of the metrics, with the size and digest of the run."""

    requests: int
    steps: int
    log_sha256: str
    simulation_s: float
    metrics_s: float
    peak_bytes: int = 0

    @property
    def cpu_s(self) -> float:
        """CPU seconds in all."""
        return self.simulation_s + self.metrics_s


def run(requests: Sequence[Request], macro: bool = True, engine: EngineName = "plain") -> Run:
    """Simulate the requests and account for them, once.

    Raises AssertionError if a request did not finish or was preempted: then this is not the intended case.
    """
    begun = time.process_time()
    log = simulate(requests, scheduler(engine), COST, macro=macro)
    simulated = time.process_time()
    found = summary(log)
    done = time.process_time()
    assert found["requests"]["finished"] == len(requests), "a request did not finish"
    assert found["preemptions"] == 0, "pages ran out"
    return Run(len(requests), log.steps, found["log_sha256"], simulated - begun, done - simulated, peak())


def best(case: Case, repeats: int) -> Run:
    """The fastest of several runs, after a warm-up that pays for imports; `peak_bytes` is the process's."""
    run(WARM_UP.drawn(), engine=case.engine)
    requests = case.drawn()
    return min((run(requests, engine=case.engine) for _ in range(repeats)), key=lambda found: found.cpu_s)


def in_fresh_process(case: Case, repeats: int) -> Run:
    """`best` in a process of its own. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "benchmarks.measure", json.dumps(asdict(case)), str(repeats)]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Run(**json.loads(printed))


def peak() -> int:
    """Largest memory of this process so far, bytes.

    On Linux `ru_maxrss` also counts what the process held before it became this program, which after a fork is its
    parent's memory; VmHWM (proc_pid_status(5)) is of this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    print(json.dumps(asdict(best(Case(**json.loads(sys.argv[1])), int(sys.argv[2])))))

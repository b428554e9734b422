"""One run of sched-sim: `python schedsim.py REQUESTS`.

Needs sched-sim, of which it was written for 0.2.1, and nothing of slotstep.
"""

from __future__ import annotations

import random
import sys

from sched_sim.core.event_engine import Simulator  # type: ignore[import-not-found,unused-ignore]
from sched_sim.core.request import Request  # type: ignore[import-not-found,unused-ignore]
from sched_sim.hardware.presets import get_hardware_profile  # type: ignore[import-not-found,unused-ignore]
from sched_sim.schedulers.factory import create_scheduler  # type: ignore[import-not-found,unused-ignore]

PAGES = 100_000


def run(requests: int) -> None:
    """Simulate poisson arrivals at 20/s of 512 prompt and 128 output tokens on 256 slots and 100,000 pages of 16."""
    hardware = get_hardware_profile("h100-80gb")
    scheduler = create_scheduler("chunked", hardware, token_budget=2048, max_batch_size=256)
    memory = scheduler.block_manager
    memory.total_gpu_blocks, memory.free_gpu_blocks = PAGES, list(range(PAGES))
    draws, now, workload = random.Random(0), 0.0, []
    for number in range(requests):
        now += draws.expovariate(20)
        workload.append(Request(request_id=str(number), arrived_at=now, prompt_tokens=512, output_tokens=128))
    simulator = Simulator(hardware, scheduler)
    simulator.submit_workload(workload)
    simulator.run()


if __name__ == "__main__":
    run(int(sys.argv[1]))

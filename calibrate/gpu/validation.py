"""The prediction against replays at three loads, by what was fitted and a host time measured beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrate.fit.fit_run import fit
from calibrate.gpu.check import Check
from calibrate.gpu.config import requests
from calibrate.measure.run_log import read_about, read_lines
from calibrate.replay.arrival_order import ByArrival
from calibrate.replay.live import Pacing, Replayed
from calibrate.replay.prompts import prompts
from calibrate.validate.experiment import REPLAYS, Subject, host_ns, judged, replayed, unfit, with_host
from calibrate.validate.loads import Load, capacity, poisson, three_loads
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool
from sim.policy.base import Policy
from sim.service.clients import OpenLoop

SEED, SEED_OF_HOST = 0, 1
LOAD_OF_HOST = 0.5


def validate(check: Check) -> None:
    """Replays at each load, a simulation, and the verdict; profile.yaml gets its host time.

    The host is measured in a replay of other requests at another load than those judged.
    """
    scale = check.scale
    about, lines = read_about(check.measured), read_lines(check.measured)
    fitted = fit(lines, about)
    pacing: Pacing = "wall" if scale.device == "cuda" else "cpu"
    with check.engine() as engine:
        engine.fill_cache(0)
        pages = min(engine.pages, 2 * scale.slots * -(-scale.max_model_len // engine.page_size))
        tokens = prompts(check.shape.vocabulary, SEED)

        def scheduler() -> Scheduler:
            return Scheduler(
                Policy(ByArrival()), NumberedPool(pages, engine.page_size),
                EngineConfig(slots=scale.slots, token_budget=scale.token_budget),
            )  # fmt: skip

        def several(load: Load, count: int) -> tuple[Subject, list[Replayed]]:
            subject = Subject(load.clients, scheduler, tokens)
            return subject, [replayed(subject, engine, pacing, None, 1) for _ in range(count)]

        host = 0
        if pacing == "wall":
            other = requests(scale, SEED_OF_HOST)
            most = capacity(other, scheduler, with_host(fitted, 0))
            half = poisson(other[: round(LOAD_OF_HOST * most * scale.lasts)], LOAD_OF_HOST * most, SEED_OF_HOST)
            host = host_ns(several(Load("half of capacity", lambda: OpenLoop(half)), 2)[1][-1])
            check.write_profile(fitted, about, host)
        check.put(host_ns=host)
        cost = with_host(fitted, host)
        found: list[dict[str, Any]] = []
        for load in three_loads(requests(scale, SEED), scheduler, cost, scale.clients, SEED, scale.lasts):
            subject, replays = several(load, REPLAYS)
            reasons = unfit(fitted, replays, pacing, scale.tolerance)
            _, judgement = judged(subject, cost, replays, scale.tolerance, reasons)
            print(load.name, *judgement.lines(), sep="\n", flush=True)
            last = replays[-1]
            found.append(
                {"load": load.name, **judgement.told(), "requests": len(last.log.requests), "steps": last.log.steps,
                 "host": last.timing.summary(), "host_at_batch": host_at(last, scale.clients)}
            )  # fmt: skip
            check.put(loads=found)


def host_at(replay: Replayed, rows: int) -> dict[str, float | int]:
    """Median host time of the steps in which exactly `rows` sequences decode, in seconds; {} without such a step.

    Of planning, launching (which packs the step) and committing, and the sum of all three.
    """
    runs = replay.log.run_table()
    tokens, decodes = (np.repeat(runs[key], runs["steps"]) for key in ("tokens", "decode"))
    chosen = (decodes == rows) & (tokens == rows)
    if not chosen.any():
        return {}
    timing = replay.timing
    spent = {
        key: float(np.median(np.frombuffer(getattr(timing, key), np.int64)[chosen])) / 1e9
        for key in ("planning", "launching", "committing")
    }
    return {"rows": rows, "steps": int(chosen.sum()), **spent, "all": sum(spent.values())}

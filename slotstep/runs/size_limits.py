"""Limits on the size of a run, lifted by `--yes` or `allow_large=True`.

A run within them takes about 20 s at most on one core, at 10,000 requests a second; docs/scenario.md lists them. What
is known beforehand is refused before the run; the rest stops the run (`sim.service.bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING

from sim.engine.apart.admission import OutOfMemoryError
from sim.request import Request
from sim.service.bounds import Bounds, Stopped
from slotstep.scenario import units
from traces.errors import BadInput, TooLarge
from traces.limits import MAX_TOKENS, MOST_BLOCKS, MOST_REQUESTS

if TYPE_CHECKING:
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario

MOST_REPLICAS = 1024
LARGEST_PAGE = 2**20
"""Tokens; the kernel keeps one counter for each position in a page."""
MOST_STEPS = 5_000_000
"""Steps of one run: some ten seconds, and half a gigabyte."""
MOST_PLANS = 1_000_000
"""Steps that are planned one by one: chunks of prompts, and all steps with macro: false."""
MOST_NUMBERED = 10_000_000
"""Pages of an engine for replay, which numbers them."""
MOST_RUNS = 100_000
"""Runs of one sweep or comparison, seeds included."""
RUN = Bounds(steps=MOST_STEPS, batches=500_000, retries=100_000, failures=20_000)
"""The bounds at which a run is stopped."""
OUTPUT, PROMPT = attrgetter("output"), attrgetter("prompt")


def check(scenario: Scenario) -> None:
    """Raise TooLarge for a single key that is too large, before anything is built."""
    if scenario.allow_large:
        return
    with scenario.blamed(""):
        total = scenario.cluster.total
        if total > MOST_REPLICAS:
            raise TooLarge(f"cluster.replicas: {total:,} replicas", MOST_REPLICAS)
        for engine in engines_of(scenario):
            if engine.page_size > LARGEST_PAGE and engine.memory == "paged":
                raise TooLarge(f"engine.page_size is {engine.page_size:,}", LARGEST_PAGE)


def check_replay(scenario: Scenario) -> None:
    """Raise TooLarge for more pages than a replay can number."""
    pages = scenario.engine.pages
    if pages > MOST_NUMBERED and not scenario.allow_large:
        with scenario.blamed(""):
            raise TooLarge(f"engine.pages is {pages:,}, and a replay numbers them", MOST_NUMBERED)


def check_runs(what: str, runs: int, allow_large: bool) -> None:
    """Raise TooLarge for too many runs; `what` begins the message."""
    if runs > MOST_RUNS and not allow_large:
        raise TooLarge(f"{what}: {runs:,} runs", MOST_RUNS)


def check_requests(scenario: Scenario, requests: Sequence[Request]) -> None:
    """Raise TooLarge for too many requests, and for requests that need too many steps or blocks."""
    if scenario.allow_large:
        return
    with scenario.blamed("workload: "):
        if len(requests) > MOST_REQUESTS:
            raise TooLarge(f"{len(requests):,} requests", MOST_REQUESTS)
        check_content(scenario, requests)
        check_steps(scenario, requests)


def check_content(scenario: Scenario, requests: Sequence[Request]) -> None:
    """Raise TooLarge for sessions whose prompts have too many blocks."""
    talk = scenario.clients.sessions if scenario.clients is not None else None
    if talk is None:
        return
    turns: dict[str, list[int]] = {}
    for request in requests:
        if request.session and request.tokens is None and not request.blocks:
            turns.setdefault(request.session, []).append(request.prompt + request.output)
    lengths = (accumulate(each) if talk.history == "added" else each for each in turns.values())
    positions = sum(sum(each) for each in lengths)
    size = min(engine.page_size for engine in engines_of(scenario))
    if positions // size > MOST_BLOCKS:
        raise TooLarge(f"the prompts of {len(turns):,} sessions have {positions // size:,} pages", MOST_BLOCKS)


def check_steps(scenario: Scenario, requests: Sequence[Request]) -> None:
    """Raise TooLarge if the requests alone imply more steps than a run may have."""
    engines = engines_of(scenario)
    most = MOST_STEPS if all(engine.macro for engine in engines) else MOST_PLANS
    chunk = max(largest_chunk(engine) for engine in engines)
    slots = max(engine.slots for engine in engines) * scenario.cluster.total
    outputs, longest = list(map(OUTPUT, requests)), max(map(PROMPT, requests), default=0)
    if max(outputs, default=0) <= most and longest <= chunk * MOST_PLANS and sum(outputs) // slots <= most:
        return  # even if every request were served whole
    generated = 0
    for request in requests:
        output = max((tokens_on(engine, request) for engine in engines), default=0)
        if not output:
            continue
        if output > most:
            raise TooLarge(f"the output of request {request.id} is {output:,} tokens, and each is a step", most)
        if (chunks := -(-request.prompt // chunk)) > MOST_PLANS:
            raise TooLarge(f"the prompt of request {request.id} is {chunks:,} chunks of {chunk:,}", MOST_PLANS)
        generated += output
    if (least := generated // slots) > most:
        raise TooLarge(f"outputs of {generated:,} tokens on {slots:,} slots are at least {least:,} steps", most)


def engines_of(scenario: Scenario) -> list[Engine]:
    """The engines of a scenario, one for each group of replicas."""
    return [
        engine
        for pool in scenario.cluster.pools
        for engine in (
            [scenario.engine] if isinstance(pool.replicas, int) else [group.engine for group in pool.replicas]
        )
    ]


def largest_chunk(engine: Engine) -> int:
    """The most prompt tokens of one step."""
    if engine.batching == "static":
        return MAX_TOKENS
    return min(engine.token_budget, engine.chunk_limit or engine.token_budget)


def tokens_on(engine: Engine, request: Request) -> int:
    """The most tokens that a request can generate on an engine; 0 if it is rejected."""
    max_model_len = engine.max_model_len
    if request.prompt + request.max_output - 1 > engine.pages * engine.page_size and max_model_len is None:
        return 0
    if not engine.chunked and request.prompt > engine.token_budget:
        return 0
    output = min(request.output, request.patience.cancel_tokens or request.output)
    return output if max_model_len is None else max(0, min(output, max_model_len - request.prompt))


def bounds(scenario: Scenario) -> Bounds:
    """The bounds of the run of a scenario."""
    return Bounds() if scenario.allow_large else RUN


@contextmanager
def stopping(scenario: Scenario) -> Iterator[None]:
    """Raise a Stopped of the block as a BadInput that names the reason and the key; an engine that dies likewise."""
    try:
        yield
    except OutOfMemoryError as death:
        with scenario.blamed("engine: "):
            raise ValueError(str(death)) from None
    except Stopped as run:
        with scenario.blamed(""):
            raise reason(scenario, run) from None


def reason(scenario: Scenario, run: Stopped) -> BadInput:
    """Why a run was stopped, as an error."""
    when = f"by {units.text(run.now)}, when {run.ended:,} of {run.sent:,} requests had ended"
    clients, failures = scenario.clients, scenario.cluster.failures
    attempts = clients.retry.attempts if clients is not None and clients.retry is not None else 0
    mean = "" if failures is None or failures.mtbf is None else f".mtbf is {units.text(failures.mtbf)}"
    found = {
        "steps": f"engine: {run.count:,} steps {when}",
        "batches": f"engine: {run.count:,} batches {when}",
        "retries": f"clients.retry.attempts is {attempts:,}: {run.count:,} were made {when}",
        "failures": f"cluster.failures{mean}: replicas had failed {run.count:,} times {when}",
    }
    if run.what in found:
        return TooLarge(found[run.what], getattr(RUN, run.what))
    return BadInput(
        {
            "time": f"the run goes on after 146 years of its own time; it had come so far {when}",
            "quiet": f"no progress: {run.count:,} events {when} brought no step to its end",
            "failing": f"no progress: cluster.failures{mean}, and {run.count:,} failures {when} "
            "left no step time to end",
            "waiting": f"no progress: the policy {scenario.policy.name} lets {run.count:,} requests wait forever",
        }[run.what]
    )

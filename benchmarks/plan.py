"""Which cases are run at which size, and the rates computed from their times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import measure
from benchmarks.cases import Case, EngineName, Outputs
from benchmarks.measure import Run

RATE = 20.0
SLOW_RATE = 3.0
REQUIRED_PER_S = 20_000
PRESET_PER_S: dict[EngineName, int] = {"vllm, cache off": 10_000, "vllm, cache on": 2_000}
PRESET_PER_S |= {"sglang, cache off": 5_000, "sglang, cache on": 1_000}
"""Requests per CPU-second that are required of a preset, with outputs of 128 tokens; of SGLang's half of vLLM's."""
MOST_S, MOST_BYTES = 60.0, 2 * 10**9
AIMED_RATIO = 8.0


@dataclass(frozen=True)
class Plan:
    """Requests of each case (`huge` None: left out) and how often each is run, the best counting."""

    small: int = 10_000
    large: int = 60_000
    huge: int | None = 1_000_000
    stepped: int = 10_000
    repeats: int = 3


FULL = Plan()
FAST = Plan(huge=None, stepped=2_000, repeats=1)


@dataclass(frozen=True)
class Throughput:
    """Two sizes of one case, and the marginal rate between them."""

    outputs: Outputs
    small: Run
    large: Run
    engine: EngineName = "plain"

    @property
    def required_per_s(self) -> int | None:
        """Requests per CPU-second that are required, if any are."""
        if self.engine != "plain":
            return PRESET_PER_S[self.engine]
        return REQUIRED_PER_S if self.outputs == "fixed 128" else None

    @property
    def marginal_per_s(self) -> float:
        """Requests per CPU-second from the small size to the large one."""
        return (self.large.requests - self.small.requests) / (self.large.cpu_s - self.small.cpu_s)


@dataclass(frozen=True)
class Ratio:
    """The same requests with macro-steps and step by step, in one process."""

    outputs: Outputs
    macro: Run
    stepped: Run

    @property
    def simulation(self) -> float:
        """How many times faster macro-steps are."""
        return self.stepped.simulation_s / self.macro.simulation_s

    @property
    def with_metrics(self) -> float:
        """The same with the accounting, which is equal for both."""
        return self.stepped.cpu_s / self.macro.cpu_s


@dataclass(frozen=True)
class Findings:
    """Everything measured; `huge` is None if the plan leaves it out."""

    throughputs: tuple[Throughput, ...]
    huge: Run | None
    ratio: Ratio

    def as_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "throughputs": [
                asdict(throughput) | {"marginal_per_cpu_s": throughput.marginal_per_s}
                for throughput in self.throughputs
            ],
            "huge": asdict(self.huge) if self.huge else None,
            "ratio": asdict(self.ratio)
            | {"simulation": self.ratio.simulation, "with_metrics": self.ratio.with_metrics},
        }


def carry_out(plan: Plan, say: Callable[[str], None]) -> Findings:
    """Run all cases of a plan; `say` is called with each case before it runs."""

    def timed(requests: int, outputs: Outputs, repeats: int, engine: EngineName = "plain") -> Run:
        say(f"{requests:,} requests, outputs {outputs}, engine {engine}")
        return measure.in_fresh_process(Case(requests, RATE, outputs, engine), repeats)

    def throughput_of(law: Outputs, engine: EngineName = "plain") -> Throughput:
        small = timed(plan.small, law, plan.repeats, engine)
        return Throughput(law, small, timed(plan.large, law, plan.repeats, engine), engine)

    throughputs = (
        throughput_of("fixed 128"),
        throughput_of("lognormal 200"),
        *(throughput_of("fixed 128", engine) for engine in PRESET_PER_S),
    )
    huge = timed(plan.huge, "fixed 128", 1) if plan.huge else None
    return Findings(throughputs, huge, ratio(plan.stepped, say))


def ratio(requests: int, say: Callable[[str], None]) -> Ratio:
    """Time the same requests with macro-steps on and off. Raises AssertionError if the logs differ."""
    outputs: Outputs = "lognormal 800"
    say(f"{requests:,} requests, outputs {outputs}, with macro-steps and without")
    measure.run(measure.WARM_UP.drawn())
    drawn = Case(requests, SLOW_RATE, outputs).drawn()
    found = Ratio(outputs, measure.run(drawn), measure.run(drawn, macro=False))
    assert found.macro.log_sha256 == found.stepped.log_sha256, "macro-steps changed the log"
    return found

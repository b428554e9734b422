"""Settings of an engine whose passes are of one kind (ApartConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from sim.memory.pool import PagePool
from sim.policy.base import Policy


@dataclass(frozen=True)
class RatioConfig:
    """What running sequences are expected to produce still. Raises ValueError for a value out of range.

    initial       share of the tokens they may still produce which is kept free at first
    minimum       least such share
    decay_passes  decode passes in which the share falls from the first to the least
    ahead         decode passes for which room is made by a retraction
    clip          most tokens that one sequence is expected to produce
    """

    initial: float = 0.7
    minimum: float = 0.098
    decay_passes: int = 600
    ahead: int = 20
    clip: int = 4096

    def __post_init__(self) -> None:
        for name, least in (("decay_passes", 1), ("ahead", 0), ("clip", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if not 0 <= self.minimum <= self.initial <= 1:
            raise ValueError(
                f"minimum is {self.minimum} and initial {self.initial}; expected 0 <= minimum <= initial <= 1"
            )


@dataclass(frozen=True)
class ApartConfig:
    """Settings of one engine that prefills and decodes in passes apart. Raises ValueError for too small a count.

    slots                 most sequences with a request row (SGLang: max_running_requests)
    max_prefill_tokens    tokens after which a prefill pass takes no further prompt
    chunked_prefill_size  most tokens of one prefill pass; a longer prompt is cut (None: prompts are never cut)
    mixed                 running sequences decode in the same pass as a prefill, where that is possible
    prefill_interval      passes without a prefill after each pass with one (SGLang: prefill_decode_interval)
    prefill_max_requests  most prompts of one prefill pass (None: no limit)
    depth                 passes in flight at once: 2 plans a pass before the results of the one before it are known
    max_model_len         longest sequence, prompt and output (None: no limit but the memory)
    ratio                 what running sequences are expected to produce still
    by_rule               the admission rule of the policy decides, not the room left beside the expected outputs
    preempt_by            a waiting sequence that finds no place takes those of running ones whose priority is lower
                          by more than so much (None: never)
    retract_by_priority   retraction takes the least urgent first, and only then the one with the fewest outputs
    retract_latest        retraction takes the last admitted first
    queue_limit           most sequences that may wait; later arrivals are rejected (None: no limit)
    """

    slots: int
    max_prefill_tokens: int
    chunked_prefill_size: int | None = None
    mixed: bool = False
    prefill_interval: int = 0
    prefill_max_requests: int | None = None
    depth: int = 1
    max_model_len: int | None = None
    ratio: RatioConfig = RatioConfig()
    by_rule: bool = False
    preempt_by: int | None = None
    retract_by_priority: bool = False
    retract_latest: bool = False
    queue_limit: int | None = None

    def __post_init__(self) -> None:
        least = {"slots": 1, "max_prefill_tokens": 1, "chunked_prefill_size": 1, "prefill_max_requests": 1}
        least |= {"max_model_len": 2, "prefill_interval": 0}
        for name, smallest in least.items():
            count = getattr(self, name)
            if count is not None and count < smallest:
                raise ValueError(f"{name} is {count}; expected at least {smallest}")
        if self.depth not in (1, 2):
            raise ValueError(f"depth is {self.depth}; expected 1 or 2")
        if self.mixed and self.chunked_prefill_size is None:
            raise ValueError("mixed needs a chunked_prefill_size")

    def check_fits(self, policy: Policy, pool: PagePool) -> None:
        """Raise ValueError for a policy or a page pool that these settings exclude."""
        if policy.admission.reserves:
            raise ValueError("passes of one kind take pages as needed; expected an admission rule that does")
        if self.chunked_prefill_size is not None and self.chunked_prefill_size % pool.page_size:
            raise ValueError(
                f"chunked_prefill_size is {self.chunked_prefill_size}; expected whole pages of {pool.page_size}"
            )

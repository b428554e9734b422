"""Clients that send a fixed set of prompts in turn: request n of a run has prompt n modulo their number.

Measured runs have the lengths of prompts but not their content; where prompts repeat, a prefix cache finds them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slotstep.runs.workload import LoadedWorkload
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.engine import Engine

Floats = NDArray[np.float64]

ALIKE = 0.9
"""Least share of prompts as long as the one a period before; below 1 because clients count tokens inexactly."""
LOOKED = 5000
FEWEST = 40
"""Most and fewest requests in which a period is searched."""
BY_CHANCE = 0.3
"""Share of pairs of equal length above which equal lengths do not imply equal prompts."""


def repeated(name: str, made: LoadedWorkload, frame: pd.DataFrame, prompts: int, engine: Engine) -> LoadedWorkload:
    """The requests of a run whose client sent `prompts` prompts in turn, with the content that follows from it.

    frame  all measured requests, also those that cannot be replayed: `id`, `sent_s` and `prompt`

    Raises BadInput, beginning with `name`, if the content is known already, if the engine has no shared prefix cache,
    and if lengths do not repeat.
    """
    said = f"{name}: --prompts {prompts}"
    if not engine.prefix_cache or engine.share == "none":
        raise BadInput(f"{said} needs an engine with prefix_cache: true, and share: tenant or all")
    if has_content(made):
        raise BadInput(f"{said}: the requests say what their prompts hold; expected lengths alone")
    order = frame.sort_values("sent_s", kind="stable")
    share = share_of_repeats(lengths(order), prompts)
    if share < ALIKE:
        raise BadInput(
            f"{said}: {share:.0%} of the prompts are as long as the one {prompts} places before; "
            f"expected at least {ALIKE:.0%} of a client that sends {prompts} prompts in turn"
        )
    place = {id_: n % prompts for n, id_ in enumerate(order["id"])}
    unknown = next((request.id for request in made.requests if request.id not in place), None)
    if unknown is not None:
        raise BadInput(f"{said}: request {unknown} was not measured; expected requests of the file itself")
    page = engine.page_size
    told = [
        replace(
            request,
            block_size=page,
            blocks=tuple(f"{place[request.id]}.{block}" for block in range(-(-request.prompt // page))),
        )
        for request in made.requests
    ]
    return replace(made, requests=told)


def has_content(made: LoadedWorkload) -> bool:
    """Whether any request has the content of its prompt."""
    return any(request.tokens is not None or request.blocks for request in made.requests)


def lengths(frame: pd.DataFrame) -> Floats:
    """The lengths of prompts, NaN where unknown."""
    return frame["prompt"].to_numpy(np.float64, na_value=np.nan)


def share_of_repeats(found: Floats, period: int) -> float:
    """The share of known lengths that equal those `period` places before; 1 if there are none."""
    before, after = found[:-period], found[period:]
    known = ~np.isnan(before) & ~np.isnan(after)
    return float((before[known] == after[known]).mean()) if known.any() else 1.0


def period(found: Floats) -> int | None:
    """The smallest period of the lengths; None if they do not repeat, or might by chance."""
    found = found[:LOOKED]
    counts = pd.Series(found).value_counts(normalize=True)
    if len(found) < FEWEST or float((counts**2).sum()) > BY_CHANCE or share_of_repeats(found, 1) >= ALIKE:
        return None
    return next(
        (length for length in range(2, len(found) // 2 + 1) if share_of_repeats(found, length) >= ALIKE), None
    )

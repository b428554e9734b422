"""The headroom of a run in words, from its summary: time in steps, the rate that could be borne, and what binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.units import percent, significant

PARTS = {
    "weights": "the pass over the weights",
    "cache reads": "cache reads",
    "arithmetic": "the arithmetic of tokens",
    "host": "the host",
}
"""Parts of a step in words."""


def sentence(summary: Mapping[str, Any]) -> str:
    """One clause after the other on the headroom of a run, without a full stop; empty if it has none."""
    found = summary.get("headroom")
    if not found:
        return ""
    who = f"the {found['pool']} pool" if "pool" in found else "it"
    words = f"{percent(found['in_steps'])} of the time in steps; with a full batch {who} could bear about "
    words += f"{significant(found['bound_per_s'])} requests/s, whatever they then wait"
    offered = summary["rates"]["offered_per_s"]
    if offered:
        words += f": {found['bound_per_s'] / offered:.2g} times the {significant(offered)} offered"
    largest = max(found["parts"], key=lambda name: found["parts"][name])
    words += (
        f". A full batch is {round(found['batch']):,} of {found['slots']:,} slots, bound by {found['batch_bound_by']}"
    )
    return words + f"; the largest part of its steps is {PARTS[largest]}, {percent(found['parts'][largest])}"

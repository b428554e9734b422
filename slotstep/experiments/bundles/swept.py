"""The runs of a sweep for a bundle."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from slotstep.experiments.bundles.bundle import BundledRun
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.experiments.sweeps.store import Store


def runs_of(store: Store) -> list[BundledRun]:
    """The runs of the present grid, in the order of its table.

    Raises BadInput if a run has failed: a bundle would not say what it gives.
    """
    rows = store.table().to_pylist()
    failed = [row for row in rows if row["status"] == "failed"]
    if failed:
        raise BadInput(
            f"{store.folder}: {len(failed):,} runs failed; expected a grid whose runs all end, for --bundle"
        )
    return [
        BundledRun(
            row["run"],
            json.loads(row["settings"]),
            json.loads(row["summary"]),
            {name: row[name] for name in store.axes},
        )
        for row in rows
    ]

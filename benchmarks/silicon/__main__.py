"""`python -m benchmarks.silicon`: open rows of dense models; see `--help` for mixtures, held rows and the fit.

Prints, by system and engine, medians of the sizes of errors in mean TTFT and TPOT: of the simulation, of the
package's own estimate, and of a simulation from shapes; and on how many rows the simulation is nearer than the
estimate. What could not be simulated is counted by its reason. Deterministic: nothing is timed but the command.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.silicon import estimate, loop
from benchmarks.silicon.constants import Constants, constants, written
from benchmarks.silicon.fit import fitted, fitted_least
from benchmarks.silicon.rows import Row, aggregated, some
from calibrate.profiles.profile import Profile
from slotstep.runs.profiles import of_database

COLUMNS = {"simulated": "simulated", "estimate": "its own estimate", "shapes": "shapes"}


def profile_of(row: Row, folder: Path, of: Constants) -> tuple[Profile, Path]:
    """The profile that a row needs, and its file in `folder` with these constants."""
    profile = of_database(row.request(), "silicon")
    return profile, written(profile, of, folder)


def compared(rows: Sequence[Row], folder: Path) -> tuple[pd.DataFrame, Counter[str]]:
    """A record for each row that can be simulated, and how many cannot by their reason."""
    records, refused = [], Counter[str]()
    for place, row in enumerate(rows):
        print(f"\r{place + 1} of {len(rows)}", end="", file=sys.stderr, flush=True)
        known = constants(row)
        try:
            profile, path = profile_of(row, folder, known)
            ttft, tpot = loop.simulated(row, {"profile": str(path), "host": f"{known.host}ms"})
        except ValueError as error:
            refused[reason(str(error))] += 1
            continue
        others = {
            "estimate": estimate.own(row, profile.content["details"]),
            "shapes": estimate.from_shapes(row),
        }
        record: dict[str, Any] = {"id": row.id, "model": row.model, "system": row.system, "engine": row.backend}
        record |= {"measured_ttft": row.ttft_s, "measured_tpot": row.tpot_s}
        record |= {"simulated_ttft": ttft + known.delay / 1e3, "simulated_tpot": tpot}
        for name, pair in others.items():
            record |= {f"{name}_ttft": pair[0] if pair else None, f"{name}_tpot": pair[1] if pair else None}
        records.append(record)
    print(file=sys.stderr)
    return pd.DataFrame(records), refused


def reason(message: str) -> str:
    """The kind of a refusal."""
    kinds = {"does not fit": "does not fit the memory", "missing": "tables that were not measured"}
    return next((kind for words, kind in kinds.items() if words in message), message)


def errors(found: pd.DataFrame) -> pd.DataFrame:
    """Relative errors of each prediction, by metric."""
    made = {}
    for name in COLUMNS:
        for metric in ("ttft", "tpot"):
            made[f"{name}_{metric}"] = found[f"{name}_{metric}"].astype(float) / found[f"measured_{metric}"] - 1
    return pd.DataFrame(made)


def table(found: pd.DataFrame, by: Sequence[str]) -> str:
    """Markdown: a line for each group, and one for all."""
    relative = errors(found)
    heads = [f"{title}, {metric.upper()}" for title in COLUMNS.values() for metric in ("ttft", "tpot")]
    lines = [f"| {' and '.join(by)} | rows | " + " | ".join([*heads, "nearer in TTFT", "in TPOT"]) + " |"]
    lines.append("|---|" + "---:|" * (len(heads) + 3))
    groups = [(" ".join(map(str, key)), rows.index) for key, rows in found.groupby(list(by))]
    for name, index in [*groups, ("all", found.index)]:
        part = relative.loc[index]
        cells = []
        for column in part:
            known = part[column].dropna().abs()
            cells.append(f"{known.median():.1%}" if len(known) else "")
        for metric in ("ttft", "tpot"):
            nearer = part[f"simulated_{metric}"].abs() < part[f"estimate_{metric}"].abs()
            cells.append(f"{nearer.mean():.0%}")
        lines.append(f"| {name} | {len(index)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.silicon", description="Against measured closed loops."
    )
    parser.add_argument("--held", action="store_true", help="the rows that are held out, instead of the open ones")
    parser.add_argument("--all-models", action="store_true", help="mixtures too, by model")
    parser.add_argument("--rows", type=int, help="at most so many, drawn by a seed")
    parser.add_argument("--clients", type=int, default=256, help="leave out rows with more clients")
    parser.add_argument("--fit", action="store_true", help="the constants that suit the open rows, instead")
    parser.add_argument(
        "--fit-least", action="store_true", help="the least time of prompts by engine and system, instead"
    )
    parser.add_argument("--out", type=Path, help="write a line for each row here, as CSV")
    options = parser.parse_args(arguments)
    began = time.process_time()
    known = [row for row in aggregated(options.held) if options.all_models or row.dense]
    rows = some([row for row in known if row.clients <= options.clients], options.rows)
    with tempfile.TemporaryDirectory() as folder:
        if options.fit or options.fit_least:
            if options.held:
                parser.error("--fit takes open rows alone; leave out --held")
            fit = fitted if options.fit else fitted_least
            print(fit(rows, lambda row, of: profile_of(row, Path(folder), of)[1]))
            return
        found, refused = compared(rows, Path(folder))
    if options.out:
        found.to_csv(options.out, index=False)
    print(table(found, ("model", "engine") if options.all_models else ("system", "engine")))
    for why, count in refused.most_common():
        print(f"{count} rows not simulated: {why}")
    kind = "held" if options.held else "open"
    print(f"{kind} rows of up to {options.clients} clients, {time.process_time() - began:.0f} s of CPU time")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.silicon.pools`: disaggregated rows that state their pools of prefill and of decode workers.

A rank of data-parallel attention is a replica, with the profile of one rank. Two constants, from the first `FIRST` of
the open rows that can be simulated: a delay of every request and a factor of TPOT; the others are compared. The
package's own estimate is that of its command `estimate` in mode `disagg`: a static prefill times 1.1 x 1.8, a static
decode times 1.08 (aiconfigurator 0.12.0, `cli/api.py` and `sdk/picking.py`). `--rows N` draws N rows, `--clients N`
leaves out those with more clients.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

import slotstep
from benchmarks.silicon.loop import lengths
from benchmarks.silicon.rows import FILE, NAMES, Row, is_open, quantisation, some
from calibrate.database.package import MODULE, installed, resolved_version
from calibrate.database.profile import model_of
from calibrate.database.request import Request, opened
from calibrate.models.architecture import from_mapping
from slotstep.runs.profiles import of_database

PREFILL, DECODE = "prefill", "decode"
SIZES = ("num_workers", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "batch_size")
LINK = 50e9
"""Bytes/s between the pools: InfiniBand NDR, 400 Gb/s a device (`inter_node_bw` of the package's H100 and H200)."""
ESTIMATE = {PREFILL: 1.1 * 1.8, DECODE: 1.08}
FIRST = 5
"""Open rows from which the constants are taken."""


@dataclass(frozen=True)
class PoolRow:
    """A row and the workers of its two pools, by the names of `SIZES`."""

    row: Row
    pools: Mapping[str, Mapping[str, int]]

    def request(self, pool: str) -> Request:
        """The profile of one rank of a pool."""
        sizes = self.pools[pool]
        return Request(
            NAMES.get(self.row.model, self.row.model),
            self.row.system,
            self.row.backend,
            tensor_parallel=sizes["tp_size"],
            pipeline_parallel=sizes["pp_size"],
            data_parallel=sizes["attention_dp_size"],
            moe_tensor_parallel=sizes["moe_tp_size"],
            expert_parallel=sizes["moe_ep_size"],
            gemm=quantisation(self.row)[0],
            moe=quantisation(self.row)[1],
            kv="fp8",
        )

    def ranks(self, pool: str) -> int:
        """Replicas of a pool."""
        return self.pools[pool]["num_workers"] * self.pools[pool]["attention_dp_size"]


def disaggregated(held: bool = False) -> list[PoolRow]:
    """InferenceX's rows that state both pools: the open or the held ones."""
    installed()
    table = pd.read_csv(str(files(MODULE) / "systems" / FILE))
    source = table["silicon_data_source"]
    wanted = ~source.str.contains("gap-analysis|-gap") & (table["mode"] == "disagg")
    wanted &= (table["id"].map(is_open) != held) & table["prefill_num_workers"].notna()
    return [pool_row(record) for record in table[wanted].to_dict("records")]


def pool_row(record: Mapping[Any, Any]) -> PoolRow:
    """A row of the file."""
    clients = re.search(r"silicon_concurrency=(\d+)", record["silicon_data_source"])
    assert clients is not None
    row = Row(
        id=record["id"],
        model=record["model_path"],
        system=record["system"],
        backend=record["backend"],
        precision=record["precision"],
        gemm=record["gemm_quant_mode"],
        moe=record["moe_quant_mode"],
        prompt=int(record["isl"]),
        output=int(record["osl"]),
        clients=int(clients[1]),
        tensor_parallel=1,
        pipeline_parallel=1,
        data_parallel=1,
        moe_tensor_parallel=1,
        expert_parallel=1,
        ttft_s=record["silicon_ttft_ms"] / 1e3,
        tpot_s=record["silicon_tpot_ms"] / 1e3,
    )
    return PoolRow(row, {pool: {key: int(record[f"{pool}_{key}"]) for key in SIZES} for pool in (PREFILL, DECODE)})


def simulated(of: PoolRow, profiles: Mapping[str, Path], kv_bytes: float) -> tuple[float, float]:
    """(mean TTFT, mean TPOT) in seconds; `profiles`: a file for each pool; `kv_bytes`: of a cached position."""
    budget = (of.row.prompt + 64 + 63) // 64 * 64
    engines = {
        PREFILL: {"slots": 256, "token_budget": max(budget, 8192), "chunked": False},
        DECODE: {"slots": max(256, 2 * of.pools[DECODE]["batch_size"]), "token_budget": 8192},
    }
    cluster: dict[str, Any] = {
        pool: {
            "router": "least_requests",
            "replicas": [
                {
                    "count": of.ranks(pool),
                    "engine": engines[pool] | {"fit": 0.9, "async_scheduling": True},
                    "cost": {"profile": str(profiles[pool])},
                }
            ],
        }
        for pool in (PREFILL, DECODE)
    }
    cluster["transfer"] = {"per_token": f"{1e9 * kv_bytes / LINK:.0f}ns"}
    scenario = slotstep.parse(
        {
            "workload": {"requests": lengths(of.row)},
            "clients": {"closed": {"clients": of.row.clients}},
            "engine": {"slots": 256, "fit": 0.9},
            "cost": {"profile": str(profiles[DECODE])},
            "cluster": cluster,
        }
    )
    requests = slotstep.run(scenario).requests
    return float(requests["ttft_s"].mean()), float(requests["tpot_s"].mean())


def own(of: PoolRow) -> tuple[float, float]:
    """(TTFT, TPOT) in seconds that the package estimates."""
    found = {}
    for pool, mode in ((PREFILL, "static_ctx"), (DECODE, "static_gen")):
        request = of.request(pool)
        with model_of(request) as model:
            engine = opened(request, model, resolved_version(request.system, request.backend, None)).steps.engine
        sizes = (of.pools[pool]["batch_size"], 1, of.row.prompt, of.row.output, 0, 1.0, 1.0)
        prefill, decode, _ = engine.run_static(*sizes, mode, 32)
        found[pool] = (prefill if pool == PREFILL else decode / (of.row.output - 1)) * ESTIMATE[pool] / 1e3
    return found[PREFILL], found[DECODE]


def compared(rows: Sequence[PoolRow], folder: Path) -> tuple[pd.DataFrame, Counter[str]]:
    """A record for each row that can be simulated, and how many cannot by their reason."""
    records, refused = [], Counter[str]()
    for place, of in enumerate(rows):
        print(f"\r{place + 1} of {len(rows)}", end="", file=sys.stderr, flush=True)
        try:
            paths, values = {}, 0.0
            for pool in (PREFILL, DECODE):
                made = of_database(of.request(pool), "silicon")
                paths[pool] = folder / f"{made.sha256[:16]}.yaml"
                paths[pool].write_text(made.text())
                values = from_mapping(made.content["model"]).kv_values(1)
            ttft, tpot = simulated(of, paths, values)
            estimate = own(of)
        except ValueError as error:
            refused["does not fit" if "does not fit" in str(error) else "tables that were not measured"] += 1
            continue
        record = {"id": of.row.id, "engine": of.row.backend, "ttft": of.row.ttft_s, "tpot": of.row.tpot_s}
        record |= {"simulated_ttft": ttft, "simulated_tpot": tpot}
        records.append(record | {"estimate_ttft": estimate[0], "estimate_tpot": estimate[1]})
    print(file=sys.stderr)
    return pd.DataFrame(records), refused


def with_constants(found: pd.DataFrame) -> tuple[pd.DataFrame, float, float]:
    """The rows after the first `FIRST`, with the delay in seconds and the factor that suit those first ones."""
    first, rest = found.iloc[:FIRST], found.iloc[FIRST:].copy()
    delay = float((first["ttft"] - first["simulated_ttft"]).median())
    factor = float((first["tpot"] / first["simulated_tpot"]).median())
    rest["simulated_ttft"] += delay
    rest["simulated_tpot"] *= factor
    return rest, delay, factor


def table(found: pd.DataFrame) -> str:
    """Markdown: medians of the sizes of relative errors, by engine and of all rows."""
    lines = ["| engine | rows | simulated, TTFT | TPOT | its own estimate, TTFT | TPOT |", "|---|" + "---:|" * 5]
    for name, rows in [*found.groupby("engine"), ("all", found)]:
        cells = [
            f"{(rows[f'{by}_{metric}'] / rows[metric] - 1).abs().median():.1%}"
            for by in ("simulated", "estimate")
            for metric in ("ttft", "tpot")
        ]
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.silicon.pools", description="Open disaggregated rows."
    )
    parser.add_argument("--rows", type=int, help="at most so many, drawn by a seed")
    parser.add_argument("--clients", type=int, default=512, help="leave out rows with more clients")
    parser.add_argument("--out", type=Path, help="write a line for each row here, as CSV")
    options = parser.parse_args(arguments)
    began = time.process_time()
    known = [of for of in disaggregated() if of.row.clients <= options.clients]
    with tempfile.TemporaryDirectory() as folder:
        found, refused = compared(some(known, options.rows), Path(folder))
    if options.out:
        found.to_csv(options.out, index=False)
    rest, delay, factor = with_constants(found)
    print(table(rest))
    print(f"from the first {FIRST}: a delay of {1e3 * delay:.0f} ms, TPOT times {factor:.2f}")
    for why, count in refused.most_common():
        print(f"{count} rows not simulated: {why}")
    print(
        f"{len(known)} open rows of up to {options.clients} clients, {time.process_time() - began:.0f} s of CPU time"
    )


if __name__ == "__main__":
    main()

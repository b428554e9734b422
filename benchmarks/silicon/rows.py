"""The measured configurations in aiconfigurator-core's silicon_sample.csv, read from the installed package.

Rows of InferenceX are those whose source has neither `gap-analysis` nor `-gap`. Rows with an even crc32 of their id
are open: constants may be fitted to them. Odd ones are held out. The file is not copied: its licence is not stated
for each source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import pandas as pd

from calibrate.database.package import MODULE, installed
from calibrate.database.request import Request

Drawn = TypeVar("Drawn")

FILE = "silicon_sample.csv"
NEEDED = (*("isl", "osl", "tp_size", "pp_size", "attention_dp_size"), *("silicon_ttft_ms", "silicon_tpot_ms"))
NAMES = {"meta-llama/Llama-3.1-70B": "llama-3.1-70b", "zhipuai/GLM-5": "zai-org/GLM-5"}
"""Models whose name in the rows is not one that is looked up."""
DENSE = ("meta-llama/Llama-3.1-70B",)
NODES_OF_EIGHT = ("h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm")
BLOCKS = "deepseek-ai/"
"""The owner of models whose 8 bits are always in blocks."""
QUANTISED = {"fp8": "fp8_static", "fp4": "nvfp4"}
"""By the precision of the rows of dense models: the checkpoints that InferenceX runs have static scales."""


@dataclass(frozen=True)
class Row:
    """One configuration: what was asked for, how many clients, and the measured means in seconds."""

    id: str
    model: str
    system: str
    backend: str
    precision: str
    gemm: str | None
    moe: str | None
    prompt: int
    output: int
    clients: int
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    moe_tensor_parallel: int
    expert_parallel: int
    ttft_s: float
    tpot_s: float

    @property
    def open(self) -> bool:
        """Whether constants may be fitted to it."""
        return is_open(self.id)

    @property
    def dense(self) -> bool:
        """Whether the model has no experts."""
        return self.model in DENSE

    def request(self) -> Request:
        """The profile that the row needs: KV cache of 8 bits, the current version of the tables."""
        gemm, moe = quantisation(self)
        return Request(
            NAMES.get(self.model, self.model),
            self.system,
            self.backend,
            tensor_parallel=self.tensor_parallel,
            pipeline_parallel=self.pipeline_parallel,
            data_parallel=self.data_parallel,
            moe_tensor_parallel=None if self.dense else self.moe_tensor_parallel,
            expert_parallel=None if self.dense else self.expert_parallel,
            gemm=gemm,
            moe=moe,
            kv="fp8",
        )


def quantisation(row: Row) -> tuple[str | None, str | None]:
    """(of matrix products, of experts) by the package's names; None: as the checkpoint is published.

    The rows' own names are those of a precision, not of a checkpoint: DeepSeek is published in blocks of 8 bits,
    gpt-oss in mxfp4 alone. Others are taken as the rows state them.
    """
    if row.dense:
        return QUANTISED[row.precision], None
    if "gpt-oss" in row.model or (row.precision == "fp8" and row.model.startswith(BLOCKS)):
        return None, None
    return row.gemm, row.moe


def is_open(row: str) -> bool:
    """Whether the row of this id is open, not held out."""
    return crc32(row.encode()) % 2 == 0


def aggregated(held: bool = False) -> list[Row]:
    """InferenceX's rows that state enough, of engines that both prefill and decode: the open or the held ones.

    Left out are rows whose devices are more than a node of eight has, where a system's nodes have eight: experts' and
    attention's are multiplied there.
    """
    installed()
    table = pd.read_csv(str(files(MODULE) / "systems" / FILE))
    source = table["silicon_data_source"]
    wanted = ~source.str.contains("gap-analysis|-gap") & (table["mode"] == "agg")
    wanted &= table["id"].map(is_open) != held
    node = table["system"].isin(NODES_OF_EIGHT)
    wanted &= ~(node & (table["tp_size"] * table["attention_dp_size"] > 8))
    wanted &= table[list(NEEDED)].notna().all(axis=1) & source.str.contains("silicon_concurrency=")
    return [row_of(record) for record in table[wanted].to_dict("records")]


def row_of(record: Mapping[Any, Any]) -> Row:
    """A row of the file."""

    def count(key: str) -> int:
        return 0 if pd.isna(record[key]) else int(record[key])

    def mode(key: str) -> str | None:
        return None if pd.isna(record[key]) else str(record[key])

    clients = re.search(r"silicon_concurrency=(\d+)", record["silicon_data_source"])
    assert clients is not None
    return Row(
        id=record["id"],
        model=record["model_path"],
        system=record["system"],
        backend=record["backend"],
        precision=record["precision"],
        gemm=mode("gemm_quant_mode"),
        moe=mode("moe_quant_mode"),
        prompt=count("isl"),
        output=count("osl"),
        clients=int(clients[1]),
        tensor_parallel=count("tp_size"),
        pipeline_parallel=count("pp_size"),
        data_parallel=count("attention_dp_size"),
        moe_tensor_parallel=count("moe_tp_size"),
        expert_parallel=count("moe_ep_size"),
        ttft_s=record["silicon_ttft_ms"] / 1e3,
        tpot_s=record["silicon_tpot_ms"] / 1e3,
    )


def some(rows: Iterable[Drawn], most: int | None, seed: int = 0) -> list[Drawn]:
    """At most so many of the rows, drawn by the seed; None: all."""
    found: Sequence[Drawn] = list(rows)
    if most is None or most >= len(found):
        return list(found)
    drawn = np.random.default_rng(seed).choice(len(found), most, replace=False)
    return [found[place] for place in sorted(drawn.tolist())]

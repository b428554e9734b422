"""Published tables of operators, read as the parts of a whole step. Two layouts:

    LLMServingSim   dense.csv, attention.csv, per_sequence.csv and, of a mixture, moe.csv (microseconds); its older
                    layout has layers.csv (nanoseconds) and an attention.csv in Vidur's columns
    Vidur           mlp.csv, and attention.csv (milliseconds), both by the number of devices

Files may be gzipped. Every operator has to be listed here with how often a step runs it; an unknown one is an error.
Fits nothing (`calibrate.compose.compose` does).
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from calibrate.arrays import Floats
from calibrate.models.architecture import Architecture

ALL_REDUCE = "all-reduces between the devices"
LAYER, STEP, SEQUENCE = "a layer", "a step", "a sequence"

LLMSERVINGSIM: Mapping[str, tuple[str, int]] = {
    "embedding": (STEP, 1),
    "layernorm": (LAYER, 2),
    "qkv_proj": (LAYER, 1),
    "qk_norm": (LAYER, 1),
    "rotary_emb": (LAYER, 1),
    "o_proj": (LAYER, 1),
    "gate_up_proj": (LAYER, 1),
    "act_fn": (LAYER, 1),
    "down_proj": (LAYER, 1),
    "final_layernorm": (STEP, 1),
    "lm_head": (SEQUENCE, 1),
    "sampler": (SEQUENCE, 1),
}
"""Operators of dense.csv and per_sequence.csv: once in what, and how often there. A block has two norms."""

LLMSERVINGSIM_V0: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("embedding", "final_layernorm"), (STEP, 1)),
    **dict.fromkeys(
        ("input_layernorm", "post_layernorm", "q_proj", "k_proj", "v_proj", "rope", "o_proj"), (LAYER, 1)
    ),
    **dict.fromkeys(("gate_proj", "up_proj", "act_fn", "down_proj"), (LAYER, 1)),
    "attn": (LAYER, 0),
    "lm_head": (SEQUENCE, 1),
}
"""Operators of layers.csv; its attention, of a prompt alone, is in attention.csv as well."""

VIDUR: Mapping[str, tuple[str, int]] = {
    "emb": (STEP, 1),
    **dict.fromkeys(("input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj"), (LAYER, 1)),
    **dict.fromkeys(("post_attention_layernorm", "mlp_up_proj", "mlp_act", "mlp_down_proj"), (LAYER, 1)),
    "add": (LAYER, 2),
}
"""Operators of mlp.csv. A block adds its residual twice. The output head is not among them."""


@dataclass(frozen=True)
class Operators:
    """A step's parts, in nanoseconds of all layers together.

    layout     the name of the layout
    dense      columns tokens, ns
    sequences  columns sequences, ns; empty if the layout has none
    attention  columns chunk, start, decodes, context (of each decode), ns
    missing    parts of a step that the layout does not have
    """

    layout: str
    dense: pd.DataFrame
    sequences: pd.DataFrame
    attention: pd.DataFrame
    missing: tuple[str, ...]


def read(folder: Path, model: Architecture, tensor_parallel: int = 1, attention: Path | None = None) -> Operators:
    """The operators of a model in a folder of one of the layouts.

    `attention` is a file to read instead of the folder's own. Raises ValueError, with the file, for a folder of no
    known layout, for a file without the columns, and for an unknown operator.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    if find(folder, "dense"):
        return llmservingsim(folder, model, tensor_parallel, attention)
    if find(folder, "layers"):
        return llmservingsim_v0(folder, model, tensor_parallel, attention)
    if find(folder, "mlp"):
        return vidur(folder, model, tensor_parallel, attention)
    raise ValueError(f"{folder}: found none of dense.csv, layers.csv and mlp.csv, plain or gzipped")


def llmservingsim(
    folder: Path, model: Architecture, tensor_parallel: int, attention: Path | None = None
) -> Operators:
    """LLMServingSim's layout."""
    dense = summed(folder, "dense", LLMSERVINGSIM, model, "layer", "tokens", "time_us", 1e3)
    if model.experts:
        experts = load(folder, "moe", ("tokens", "activated_experts", "time_us"))
        dense = pd.DataFrame({"tokens": dense["tokens"], "ns": dense["ns"] + moe(experts, dense["tokens"], model)})
    elif find(folder, "moe"):
        raise ValueError(f"{folder}: has moe.csv, and {model.name} has no experts")
    sequences = summed(folder, "per_sequence", LLMSERVINGSIM, model, "layer", "sequences", "time_us", 1e3)
    columns = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
    found = load(folder, "attention", columns, attention)
    if "n_decode" not in found:
        raise ValueError(f"{attention}: has no column n_decode; expected {', '.join(columns)}")
    parts = pd.DataFrame(
        {
            "chunk": found["prefill_chunk"],
            "start": found["kv_prefill"],
            "decodes": found["n_decode"],
            "context": found["kv_decode"],
            "ns": found["time_us"] * 1e3 * model.layers,
        }
    )
    return Operators("LLMServingSim", dense, sequences, parts, (ALL_REDUCE,) if tensor_parallel > 1 else ())


def llmservingsim_v0(
    folder: Path, model: Architecture, tensor_parallel: int, attention: Path | None = None
) -> Operators:
    """LLMServingSim's older layout; its attention has Vidur's columns."""
    names = ("layer_name", "input", "tp_size", "latency(ns)")
    found = load(folder, "layers", names)
    for_devices(found, "tp_size", tensor_parallel, folder / "layers.csv")
    dense = summed(folder, "layers", LLMSERVINGSIM_V0, model, "layer_name", "input", "latency(ns)", 1.0)
    head = summed(folder, "layers", LLMSERVINGSIM_V0, model, "layer_name", "input", "latency(ns)", 1.0, SEQUENCE)
    parts = vidur_attention(folder, model, tensor_parallel, attention)
    missing = ("sampling",) + ((ALL_REDUCE,) if tensor_parallel > 1 else ())
    return Operators("LLMServingSim v0", dense, head.rename(columns={"tokens": "sequences"}), parts, missing)


def vidur(folder: Path, model: Architecture, tensor_parallel: int, attention: Path | None = None) -> Operators:
    """Vidur's layout: medians of its operators."""
    names = {f"time_stats.{name}.median": name for name in VIDUR}
    found = load(folder, "mlp", ("num_tokens", "num_tensor_parallel_workers", *names))
    found = for_devices(found, "num_tensor_parallel_workers", tensor_parallel, folder / "mlp.csv")
    columns = [str(column) for column in found]
    for column in (name for name in columns if name.startswith("time_stats.") and name.endswith(".median")):
        known(column.split(".")[1], VIDUR, folder / "mlp.csv")
    total = sum(found[column] * times(VIDUR[name], model) for column, name in names.items()) * 1e6
    dense = pd.DataFrame({"tokens": found["num_tokens"], "ns": total}).groupby("tokens", as_index=False).median()
    parts = vidur_attention(folder, model, tensor_parallel, attention)
    missing = ("output head", "sampling") + ((ALL_REDUCE,) if tensor_parallel > 1 else ())
    return Operators("Vidur", dense, pd.DataFrame({"sequences": [], "ns": []}), parts, missing)


def vidur_attention(folder: Path, model: Architecture, tensor_parallel: int, attention: Path | None) -> pd.DataFrame:
    """Attention in Vidur's columns: a prompt's chunk, or decodes, never both."""
    shape = ("num_tensor_parallel_workers", "batch_size", "prefill_chunk_size", "kv_cache_size", "is_prefill")
    stages = ("time_stats.attn_prefill.median", "time_stats.attn_decode.median")
    found = load(folder, "attention", (*shape, *stages), attention)
    found = for_devices(found, "num_tensor_parallel_workers", tensor_parallel, attention or folder / "attention.csv")
    prefill = found["is_prefill"].astype(bool)
    parts = pd.DataFrame(
        {
            "chunk": found["prefill_chunk_size"].where(prefill, 0),
            "start": found["kv_cache_size"].where(prefill, 0),
            "decodes": found["batch_size"].where(~prefill, 0),
            "context": found["kv_cache_size"].where(~prefill, 0),
            "ns": found[stages[0]].where(prefill, found[stages[1]]) * 1e6 * model.layers,
        }
    )
    return parts.astype({"chunk": int, "start": int, "decodes": int, "context": int})


def summed(
    folder: Path,
    stem: str,
    operators: Mapping[str, tuple[str, int]],
    model: Architecture,
    name: str,
    by: str,
    value: str,
    unit: float,
    once_in: str | None = None,
) -> pd.DataFrame:
    """The operators of a file, summed over one step by tokens (or sequences): columns `tokens` (`sequences`), `ns`.

    `once_in`: only the operators that run once in that; None: all, but in a file with both not those that run by
    sequence. Raises ValueError for an operator that lacks some of the sizes: its sum would have fewer parts.
    """
    found = load(folder, stem, (name, by, value))
    for operator in found[name].unique():
        known(str(operator), operators, folder / f"{stem}.csv")
    kinds = {operators[str(operator)][0] for operator in found[name].unique()}
    if once_in is None and kinds != {SEQUENCE}:
        kinds.discard(SEQUENCE)
    elif once_in is not None:
        kinds = {once_in}
    found = found[[operators[operator][0] in kinds for operator in found[name]]]
    weights = np.array([times(operators[operator], model) for operator in found[name]], np.float64)
    sizes = found.groupby(by)[name].nunique()
    if (short := sizes[sizes < found[name].nunique()]).size:
        raise ValueError(f"{folder / stem}.csv: {by} {short.index[0]} has {short.iloc[0]} of {sizes.max()} operators")
    total = (found[value] * weights * unit).groupby(found[by]).sum()
    column = "sequences" if by == "sequences" else "tokens"
    return pd.DataFrame({column: total.index.to_numpy(), "ns": total.to_numpy()})


def moe(experts: pd.DataFrame, tokens: pd.Series[int], model: Architecture) -> Floats:
    """Nanoseconds of the expert layers by number of tokens, at the expected number of activated experts.

    Linear between the measured numbers of experts, and between the measured numbers of tokens.
    """
    table = experts.groupby("tokens")
    measured = []
    for number, rows in table:
        touched = model.experts_touched(float(number))  # type: ignore[arg-type]  # a group's key is its number
        rows = rows.sort_values("activated_experts")
        measured.append((float(number), float(np.interp(touched, rows["activated_experts"], rows["time_us"]))))  # type: ignore[arg-type]
    at, us = np.array(measured).T
    return np.asarray(np.interp(tokens.to_numpy(np.float64), at, us) * 1e3 * (model.layers - model.dense_layers))


def times(operator: tuple[str, int], model: Architecture) -> int:
    """How often a step runs an operator."""
    once_in, count = operator
    return count * (model.layers if once_in == LAYER else 1)


def known(operator: str, operators: Mapping[str, tuple[str, int]], file: Path) -> None:
    """Raise ValueError, with the nearest one, unless the operator is known."""
    if operator not in operators:
        nearest = difflib.get_close_matches(operator, operators, n=1, cutoff=0.0)[0]
        raise ValueError(f"{file}: {operator}: unknown operator; the nearest known is {nearest}")


def for_devices(found: pd.DataFrame, column: str, devices: int, file: Path) -> pd.DataFrame:
    """The rows for this number of devices; raises ValueError if there are none."""
    rows = found[found[column] == devices]
    if rows.empty:
        numbers = ", ".join(str(number) for number in sorted(found[column].unique()))
        raise ValueError(f"{file}: has {column} {numbers}; expected {devices}")
    return rows


def find(folder: Path, stem: str) -> Path | None:
    """The file of a table in a folder, plain or gzipped."""
    return next((path for ending in (".csv", ".csv.gz") if (path := folder / f"{stem}{ending}").is_file()), None)


def load(folder: Path, stem: str, columns: tuple[str, ...], instead: Path | None = None) -> pd.DataFrame:
    """A table with at least these columns; raises ValueError, with the file, if it or a column is missing."""
    path = instead or find(folder, stem)
    if path is None:
        raise ValueError(f"{folder}: has no {stem}.csv, plain or gzipped; without it no step can be composed")
    try:
        found = pd.read_csv(path)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read as CSV: {' '.join(str(error).split())}") from None
    for column in columns:
        if column not in found:
            raise ValueError(f"{path}: has no column {column}; expected {', '.join(columns)}")
    numbers = found[[column for column in columns if column not in ("layer", "layer_name", "is_prefill")]]
    for column in numbers.columns.astype(str):
        bad = pd.to_numeric(numbers[column], errors="coerce").isna() & ~found[column].isna()
        if bad.any() or (not column.startswith("time_stats.attn_") and found[column].isna().any()):
            row = int((bad | found[column].isna()).to_numpy().argmax())
            raise ValueError(f"{path}, row {row + 2}: {column} is {found[column].iloc[row]!r}; expected a number")
    return found

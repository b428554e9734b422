"""The bandwidth of attention alone: each backend on the same decodes.

Over several layers; a case whose keys and values are less than four times a GPU's cache is marked as cached. Times
are of the device, on a GPU from a captured graph where the backend allows, as in the engine; a backend that cannot be
captured is marked, as its times may contain those of its launches. Bytes are the keys and values that the rows attend
to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from calibrate.decoder.attention.registry import choose_attention
from calibrate.decoder.engine.cuda_graphs import captured
from calibrate.decoder.engine.streams import CpuStream, CudaStream, ExecutionStream
from calibrate.decoder.model.attention_metadata import AttentionMetadata, Cache
from calibrate.decoder.model.decoder import Attention, torch_dtype
from calibrate.hardware.peaks import seconds
from calibrate.models.decoder_shape import DType, ModelShape


def kernel_bench(
    shape: ModelShape,
    device: torch.device,
    dtype: DType,
    backends: Sequence[str],
    batches: Sequence[int],
    contexts: Sequence[int],
    page_sizes: Sequence[int],
) -> Iterator[dict[str, Any]]:
    """Bytes a second of every backend at every batch, context and page size for which there is memory."""
    stream: ExecutionStream = CudaStream(device) if device.type == "cuda" else CpuStream(1)
    try:
        for size in page_sizes:
            for rows in batches:
                for context in contexts:
                    yield from stream.do(partial(one_case, shape, device, dtype, backends, rows, context, size))
    finally:
        stream.close()


def sweep(
    shape: ModelShape, device: torch.device, dtype: DType, rows: int, context: int, limit: float = 40.0
) -> Iterator[dict[str, Any]]:
    """The Triton decode at one batch and context by other tiles, warps, stages and splits, within `limit` seconds.

    The default comes first, then its neighbours in one setting at a time.
    """
    from calibrate.decoder.attention.triton_backend import TILE, WARPS, TritonAttention, loop_stages

    stream, deadline = CudaStream(device), time.monotonic() + limit
    first: dict[str, Any] = {
        "tile": TILE,
        "warps": WARPS,
        "stages": loop_stages(torch_dtype(dtype).itemsize),
        "splits": None,
    }
    settings = [first] + [
        {**first, key: value}
        for key, values in (("stages", (2, 3, 4, 6)), ("splits", (1, 2, 4)), ("tile", (32, 128)), ("warps", (8,)))
        for value in values
    ]
    try:
        batch, cache, queries = stream.do(partial(case, shape, device, dtype, rows, context, 16))
        for each in settings:
            if time.monotonic() >= deadline:
                return
            try:
                attend = TritonAttention(shape, rows, device, dtype_bytes=torch_dtype(dtype).itemsize, **each)
                took = stream.do(partial(seconds_of, attend, device, queries, cache, batch))
            except Exception as error:  # a kernel that does not compile, or does not fit
                yield {**each, "skipped": str(error) or repr(error)}
                continue
            yield {**each, "seconds": took, "bytes_per_s": moved(shape, dtype, rows, context) / took}
    finally:
        stream.close()


def moved(shape: ModelShape, dtype: DType, rows: int, context: int) -> int:
    """Bytes of the keys and values of a batch in one layer."""
    return 2 * rows * context * shape.kv_width * torch_dtype(dtype).itemsize


def case(
    shape: ModelShape, device: torch.device, dtype: DType, rows: int, context: int, size: int
) -> tuple[AttentionMetadata, Cache, torch.Tensor]:
    """A batch of decodes, a cache of several layers, and queries; raises OutOfMemoryError."""
    kind, stream = torch_dtype(dtype), torch.Generator(device).manual_seed(0)
    layers = max(2, min(shape.layers, 8))
    slim = ModelShape("layers", layers, 2, 1, shape.heads, shape.kv_heads, shape.head_size, 1)
    cache = Cache.empty(slim, rows * -(-context // size), size, kind, device)
    cache.data.normal_(generator=stream)
    queries = torch.randn(rows, shape.heads, shape.head_size, device=device, generator=stream).to(kind)
    return decodes(rows, context, size, device), cache, queries


def one_case(
    shape: ModelShape, device: torch.device, dtype: DType, backends: Sequence[str], rows: int, context: int, size: int
) -> list[dict[str, Any]]:
    """One batch by every backend."""
    about: dict[str, Any] = {"batch": rows, "context": context, "page_size": size}
    try:
        batch, cache, queries = case(shape, device, dtype, rows, context, size)
    except torch.OutOfMemoryError as error:
        return [{**about, "skipped": str(error).partition("\n")[0]}]
    about["cached"] = len(cache.data) * moved(shape, dtype, rows, context) < 4 * cache_bytes(device)
    found = []
    for backend in backends:
        try:
            _, attend = choose_attention(backend, shape, torch_dtype(dtype), device, rows)
            took = seconds_of(attend, device, queries, cache, batch)
        except Exception as error:  # whatever a backend throws is what there is to know of it
            found.append({**about, "backend": backend, "skipped": str(error) or repr(error)})
            continue
        with_launches = device.type == "cuda" and not attend.capturable
        found.append(
            {**about, "backend": backend, "seconds": took, "bytes_per_s": moved(shape, dtype, rows, context) / took,
             "with_launches": with_launches}
        )  # fmt: skip
    return found


def cache_bytes(device: torch.device) -> int:
    """Bytes of a GPU's last cache; 0 on a CPU, where nothing is said of it."""
    return int(torch.cuda.get_device_properties(device).L2_cache_size) if device.type == "cuda" else 0


def seconds_of(
    attend: Attention, device: torch.device, queries: torch.Tensor, cache: Cache, batch: AttentionMetadata
) -> float:
    """Median seconds that a backend takes for one layer."""
    attend.prepare(batch)
    layers = len(cache.data)

    def all_layers() -> None:
        for layer in range(layers):
            attend(queries, *cache.layer(layer), batch)

    on_graph = device.type == "cuda" and attend.capturable
    return seconds(device, captured(all_layers) if on_graph else all_layers) / layers


def decodes(rows: int, context: int, page_size: int, device: torch.device) -> AttentionMetadata:
    """A batch of `rows` decodes that attend to `context` positions each, in shuffled pages."""
    width = -(-context // page_size)
    tables = torch.randperm(rows * width, generator=torch.Generator().manual_seed(0)).reshape(rows, width).int()
    return AttentionMetadata(
        tables=tables.to(device),
        lengths=torch.full((rows,), context, dtype=torch.int32, device=device),
        positions=torch.full((rows,), context - 1, dtype=torch.int32, device=device),
        owners=torch.arange(rows, dtype=torch.int32, device=device),
        offsets=torch.zeros(1, dtype=torch.int32, device=device),
        counts=(1,) * rows,
        spans=(context,) * rows,
        page_size=page_size,
        decodes=rows,
    )

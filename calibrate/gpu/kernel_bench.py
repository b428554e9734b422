"""The bandwidth of attention alone: each backend on the same decodes.

Over several layers, so that no cache of the device holds the data. Times are of the device, on a GPU from a captured
graph where the backend allows, as in the engine; bytes are the keys and values that the rows attend to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from calibrate.decoder.attention.registry import choose_attention
from calibrate.decoder.engine.cuda_graphs import captured
from calibrate.decoder.engine.streams import CpuStream, CudaStream, ExecutionStream
from calibrate.decoder.model.attention_metadata import AttentionMetadata, Cache
from calibrate.decoder.model.decoder import torch_dtype
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
) -> list[dict[str, Any]]:
    """Bytes a second of every backend at every batch, context and page size for which there is memory."""
    stream: ExecutionStream = CudaStream(device) if device.type == "cuda" else CpuStream(1)
    cases = [(b, c, p) for p in page_sizes for b in batches for c in contexts]
    try:
        return [row for case in cases for row in stream.do(partial(one_case, shape, device, dtype, backends, *case))]
    finally:
        stream.close()


def one_case(
    shape: ModelShape, device: torch.device, dtype: DType, backends: Sequence[str], rows: int, context: int, size: int
) -> list[dict[str, Any]]:
    """One batch by every backend."""
    about = {"batch": rows, "context": context, "page_size": size}
    pages = -(-context // size)
    layers = max(2, min(shape.layers, 8))
    moved = 2 * rows * context * shape.kv_width * torch_dtype(dtype).itemsize
    try:
        stream = torch.Generator(device).manual_seed(0)
        slim = ModelShape("layers", layers, 2, 1, shape.heads, shape.kv_heads, shape.head_size, 1)
        cache = Cache.empty(slim, rows * pages, size, torch_dtype(dtype), device)
        cache.data.normal_(generator=stream)
        queries = torch.randn(rows, shape.heads, shape.head_size, device=device, generator=stream).to(
            torch_dtype(dtype)
        )
        batch = decodes(rows, context, size, device)
    except torch.OutOfMemoryError as error:
        return [{**about, "skipped": str(error).partition("\n")[0]}]
    found = []
    for backend in backends:
        try:
            took = seconds_of(backend, shape, device, dtype, queries, cache, batch)
        except Exception as error:  # whatever a backend throws is what there is to know of it
            found.append({**about, "backend": backend, "skipped": str(error) or repr(error)})
            continue
        found.append({**about, "backend": backend, "seconds": took, "bytes_per_s": moved / took})
    return found


def seconds_of(
    backend: str,
    shape: ModelShape,
    device: torch.device,
    dtype: DType,
    queries: torch.Tensor,
    cache: Cache,
    batch: AttentionMetadata,
) -> float:
    """Median seconds that a backend takes for one layer."""
    _, attend = choose_attention(backend, shape, torch_dtype(dtype), device, len(batch.counts))
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

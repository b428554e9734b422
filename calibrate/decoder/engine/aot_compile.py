"""Compiles the Triton kernels for GPUs that are not present, and prints registers, shared memory and buffers.

    python -m calibrate.decoder.engine.aot_compile --model llama-3.1-8b --arch 80 90 100

Source, constants and alignments are those of run time, so compile errors for a GPU are found on any machine.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from calibrate.decoder.attention import triton_kernels
from calibrate.decoder.attention.triton_backend import (
    WARPS,
    chunk_constants,
    decode_constants,
    loop_stages,
    merge_constants,
)
from calibrate.decoder.model import ops_triton
from calibrate.models.architecture import BYTES
from calibrate.models.decoder_shape import DTYPES, DType, ModelShape, model_shape

POINTERS = {"float32": "*fp32", "bfloat16": "*bf16", "float16": "*fp16"}
FLOAT32 = ("parts", "weights", "rotary")
INT32 = ("tables", "lengths", "offsets", "positions", "pages", "places")
NUMBERS = {"scale": "fp32", "epsilon": "fp32"}
STRIDES = ("query_row", "page_stride", "head_stride", "place_stride", "table_row")
SHARED_BYTES = {80: 166_912, 90: 232_448, 100: 232_448}
"""Shared memory of one block at most (CUDA programming guide, compute capabilities)."""


@dataclass(frozen=True)
class Compiled:
    """One kernel for one architecture.

    registers  of a thread, and `spilled` bytes that did not fit into them
    shared     bytes of shared memory of a block
    buffers    tiles of keys, or of values, that it has in shared memory at a time, the one in use among them
    """

    kernel: str
    arch: int
    registers: int
    spilled: int
    shared: int
    buffers: int


def compiled_kernels(
    shape: ModelShape, page_size: int, itemsize: int
) -> Iterator[tuple[Any, dict[str, Any], dict[str, int]]]:
    """Every kernel with the constants and options it gets for a shape."""
    heads, head = shape.heads, shape.head_size
    decode = {"num_warps": WARPS, "num_stages": loop_stages(itemsize)}
    chunk = {"num_warps": WARPS, "num_stages": loop_stages(itemsize)}
    for splits in (1, 8):
        yield triton_kernels.decode_splits, decode_constants(shape, page_size, splits), decode
    yield triton_kernels.chunk_tiles, chunk_constants(shape, page_size), chunk
    yield triton_kernels.merge_splits, merge_constants(shape, 8), {"num_warps": WARPS}
    for add in (False, True):
        yield ops_triton.norm_rows, ops_triton.norm_constants(shape.hidden, add), {}
    yield ops_triton.rotate_heads, ops_triton.rotate_constants(heads, shape.kv_heads, head), {"num_warps": 1}
    yield ops_triton.swiglu_columns, ops_triton.swiglu_constants(shape.intermediate), {}


def compiled(kernel: Any, constants: dict[str, Any], options: dict[str, int], dtype: DType, arch: int) -> Compiled:
    """Compile one kernel for one architecture, down to its machine code; Triton's errors are raised as they are."""
    signature: dict[str, str] = {}
    aligned: dict[tuple[int], list[list[object]]] = {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name in NUMBERS:
            signature[name] = NUMBERS[name]
        else:
            kind = "*i32" if name in INT32 else "*fp32" if name in FLOAT32 else POINTERS[dtype]
            signature[name] = "i32" if name in STRIDES else kind
            if name not in (*INT32, "table_row"):
                aligned[place,] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constants, aligned)
    built = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    assert len(built.asm["cubin"]) > 0, "no machine code"
    registers, spilled = assembled(built.asm["ptx"], arch)
    shared = built.metadata.shared
    return Compiled(kernel.__name__, arch, registers, spilled, shared, buffers_of(built.asm["ttgir"]))


def assembled(ptx: str, arch: int) -> tuple[int, int]:
    """Registers and spilled bytes of a thread, as the assembler that Triton takes for an architecture says them."""
    target = next(line.split()[1].rstrip(",") for line in ptx.splitlines() if line.startswith(".target"))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        command = [
            get_ptxas(arch).path,
            "-v",
            f"--gpu-name={target}",
            str(source),
            "-o",
            f"{folder}/kernel.cubin",
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    used, stores = re.search(r"Used (\d+) registers", said), re.search(r"(\d+) bytes spill stores", said)
    assert used is not None, said
    return int(used[1]), int(stores[1]) if stores is not None else 0


def buffers_of(ttgir: str) -> int:
    """The most tiles of one tensor in shared memory: the first number of the type of an allocation of several."""
    found = re.findall(r"ttg\.local_alloc : \(\) -> !ttg\.memdesc<(\d+)x\d+x\d+x", ttgir)
    return max(map(int, found), default=0)


def main() -> None:
    """Compile all kernels for all architectures, one line each. Exit code 1 if one needs too much shared memory."""
    parser = argparse.ArgumentParser(
        prog="python -m calibrate.decoder.engine.aot_compile", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--model", default="llama-3.1-8b", help="a named model, or the path of a config.json")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--page-size", type=int, default=16)
    parser.add_argument("--arch", type=int, nargs="+", choices=list(SHARED_BYTES), default=list(SHARED_BYTES))
    parser.add_argument("--kernel", help="only kernels with this in their name")
    asked = parser.parse_args()
    try:
        shape = model_shape(asked.model)
    except ValueError as refusal:
        parser.error(str(refusal))
    print(f"{'kernel':<14} {'arch':>6} {'registers':>9} {'spilled':>7} {'shared bytes':>12} {'buffers':>7}")
    for kernel, constants, options in compiled_kernels(shape, asked.page_size, BYTES[asked.dtype]):
        for arch in asked.arch:
            if asked.kernel is None or asked.kernel in kernel.__name__:
                found = compiled(kernel, constants, options, asked.dtype, arch)
                print(
                    f"{found.kernel:<14} {f'sm_{arch}':>6} {found.registers:>9} {found.spilled:>7} "
                    f"{found.shared:>12} {found.buffers:>7}",
                    flush=True,
                )
                if found.shared > SHARED_BYTES[arch]:
                    raise SystemExit(f"{found.kernel}: more shared memory than the {SHARED_BYTES[arch]} of sm_{arch}")


if __name__ == "__main__":
    main()

"""The kernels compile for GPUs that are not here, fit into registers and shared memory, and fetch ahead of use.

In a process of its own: here kernels are interpreted. SLOTSTEP_KERNELS=full compiles other shapes and types too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

ARCHES = ["80", "90", "100"]
FULL = [
    ["--model", model, "--dtype", dtype, "--page-size", page_size]
    for model, dtype, page_size in (
        ("qwen2.5-7b", "bfloat16", "1"),
        ("llama-2-7b", "float16", "128"),
        ("llama-3.2-1b", "bfloat16", "32"),
        ("tiny", "float32", "16"),
        ("llama-3.1-8b", "float32", "8"),
    )
]


def compiled(arguments: list[str], cache: Path) -> list[list[str]]:
    kept = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "calibrate.decoder.engine.aot_compile", *arguments]
    environment = kept | {"TRITON_CACHE_DIR": str(cache)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [line.split() for line in run.stdout.splitlines()[1:]]


@pytest.mark.slow
def test_every_kernel_compiles_for_three_generations(tmp_path: Path) -> None:
    lines = compiled(["--model", "llama-3.1-8b", "--arch", *ARCHES], tmp_path)
    kernels = {"decode_splits", "merge_splits", "chunk_tiles", "norm_rows", "rotate_heads", "swiglu_columns"}
    for arch in ARCHES:
        assert {line[0] for line in lines if line[1] == f"sm_{arch}"} == kernels
    assert len(lines) == 3 * 8
    for kernel, arch, *numbers in lines:
        registers, spilled, shared, buffers = map(int, numbers)
        if kernel == "decode_splits":
            # Two tiles each of 64 keys and values of 128 numbers of two bytes: one is filled while one is read.
            assert buffers == 2, (kernel, arch)
            assert shared >= 4 * 64 * 128 * 2
            # Four warps of 128 registers and three blocks of shared memory a multiprocessor of an H100 or H200.
            assert registers <= 128
            assert spilled == 0
            assert 3 * shared <= 233_472
        elif kernel == "chunk_tiles":
            assert buffers >= 2, (kernel, arch)
            assert spilled <= 16
        else:
            assert (registers <= 64, spilled, buffers) == (True, 0, 0), (kernel, arch)


@pytest.mark.skipif(os.environ.get("SLOTSTEP_KERNELS") != "full", reason="SLOTSTEP_KERNELS=full compiles them all")
@pytest.mark.parametrize("arguments", FULL, ids=" ".join)
def test_other_shapes_types_and_pages_compile_too(arguments: list[str], tmp_path: Path) -> None:
    assert len(compiled(arguments, tmp_path)) == 3 * 8

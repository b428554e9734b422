"""How InferenceX starts its servers, as far as it decides when a prompt is computed: from its launch scripts.

They are in the folder `benchmarks` of github.com/SemiAnalysisAI/InferenceX: `70b_fp8_h200_slurm.sh` and
`70b_fp8_b200_docker.sh` for vLLM, `70b_fp8_h200_trt_slurm.sh` and `70b_fp4_b200_trt_slurm.sh` for TensorRT-LLM,
`dsr1_fp8_h200.sh`, `dsr1_fp8_b200.sh` and `dsr1_fp4_b200.sh` for SGLang. All switch the prefix cache off.
"""

from __future__ import annotations

from typing import Any

from benchmarks.silicon.rows import Row

GATHERED = 20
"""TensorRT-LLM's `batch_wait_timeout_iters` for 1,024 in and out on fewer than eight devices: a prompt waits for so
many steps, unless 0.9 of the budget is full before."""
POLLED = {True: 30, False: 10}
"""SGLang's `scheduler_recv_interval` on Blackwell, by whether there are 16 clients or more: its scheduler looks for
new requests after so many decode passes, and after every prefill."""
CHUNKS = {"fp8": 32768, "fp4": 16384}
"""SGLang's `chunked_prefill_size`, by precision."""


def engine(row: Row) -> dict[str, Any]:
    """The engine section of a row.

    vLLM: its server's defaults. TensorRT-LLM: whole prompts, pages reserved, and tokens for one prompt of the nominal
    length beside all clients. SGLang: its preset, with large chunks.
    """
    if row.backend == "trtllm":
        return {
            "preset": "trtllm",
            "max_batch_size": max(row.clients, 256),
            "max_num_tokens": budget(row.prompt, row.clients),
            "tokens_per_block": 16,
            "fit": 0.9,
        }
    if row.backend == "sglang":
        chunk = CHUNKS[row.precision]
        sizes = {"chunked_prefill_size": chunk, "max_prefill_tokens": max(chunk, 16384)}
        return {"preset": "sglang", "disable_radix_cache": True, "fit": 0.9, **sizes}
    return decisions_of_vllm()


def budget(prompt: int, clients: int) -> int:
    """Tokens of a step of TensorRT-LLM: of one prompt beside all clients."""
    return (clients + prompt + 64 + 63) // 64 * 64


def decisions_of_vllm() -> dict[str, Any]:
    """The engine section of vLLM's preset without a prefix cache."""
    return {"preset": "vllm", "prefix_cache": False, "fit": 0.9}


def steps_held(row: Row) -> float:
    """Decode steps for which a new prompt waits before its scheduler may take it, on average.

    Under `batch_wait_timeout_iters` all of them; under `scheduler_recv_interval` half of them, for a request comes at
    any step between two looks.
    """
    if row.backend == "sglang" and row.system.startswith(("b200", "b300")):
        return POLLED[row.clients >= 16] / 2
    gathers = row.dense and (row.prompt, row.output) == (1024, 1024) and row.tensor_parallel < 8
    return GATHERED if row.backend == "trtllm" and gathers else 0

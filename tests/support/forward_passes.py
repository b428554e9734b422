"""Forward-pass metrics as the documentation of each publisher describes them, for one short run of two prompts.

Prompt a: 100 tokens, prompt b: 60. Step 0 computes a; step 1 computes the first 40 of b beside a's first decode;
step 2 the other 20 of b; step 3 decodes both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

STEPS: tuple[dict[str, Any], ...] = (
    {"prefill": (1, 100, 0), "decode": (0, 0), "seconds": 0.012},
    {"prefill": (1, 40, 0), "decode": (1, 100), "seconds": 0.011},
    {"prefill": (1, 20, 40), "decode": (1, 101), "seconds": 0.0105},
    {"prefill": (0, 0, 0), "decode": (2, 162), "seconds": 0.01},
)
"""(prompts, tokens, cached before), (decodes, their context), duration of each step."""
IDLE: dict[str, Any] = {"prefill": (0, 0, 0), "decode": (0, 0), "seconds": 0.0}


def record(number: int, of: dict[str, Any], own_tokens: bool, **identity: Any) -> dict[str, Any]:
    """One record of version 1; `own_tokens`: the cached tokens of prompts count those of the step."""
    prompts, tokens, cached = of["prefill"]
    decodes, context = of["decode"]
    queued = dict.fromkeys(("num_prefill_requests", "sum_prefill_tokens", "num_decode_requests"), 0)
    return {
        "version": 1,
        **identity,
        "dp_rank": 0,
        "counter_id": number,
        "wall_time": of["seconds"],
        "scheduled_requests": {
            "num_prefill_requests": prompts,
            "sum_prefill_tokens": tokens,
            "var_prefill_length": 0.0,
            "sum_prefill_kv_tokens": cached + own_tokens * tokens,
            "num_decode_requests": decodes,
            "sum_decode_kv_tokens": context,
            "var_decode_kv_tokens": 0.0,
        },
        "queued_requests": {
            **queued,
            "var_prefill_length": 0.0,
            "sum_decode_kv_tokens": 0,
            "var_decode_kv_tokens": 0.0,
        },
    }


def dynamo_trace() -> Iterator[dict[str, Any]]:
    """Lines of NVIDIA Dynamo's trace (`dynamo.fpm.trace.v1`, full): records in an envelope, heartbeats included."""
    for number, of in enumerate((*STEPS, IDLE)):
        yield {
            "timestamp": 10 * number,
            "event": {
                "schema": "dynamo.fpm.trace.v1",
                "source": {"namespace": "default", "component": "backend", "producer_id": "4192"},
                "capture_mode": "full",
                "observed_at_unix_ms": 1782777601250 + 10 * number,
                "fpm": record(number, of, False, worker_id="4192"),
            },
        }


def sglang() -> Iterator[dict[str, Any]]:
    """Messages of SGLang, which has counted a step's own tokens with what prompts have cached."""
    return (record(number, of, True, worker_id="endpoint-42") for number, of in enumerate((*STEPS, IDLE)))


def tensorrt_llm() -> Iterator[dict[str, Any]]:
    """Dictionaries of TensorRT-LLM's PyExecutor: without a worker."""
    return (record(number, of, False) for number, of in enumerate((*STEPS, IDLE)))


def vllm() -> Iterator[dict[str, Any]]:
    """Messages of vLLM's own emitter: with the scope of the time."""
    for number, of in enumerate((*STEPS, IDLE)):
        yield record(number, of, False, worker_id="vllm-0", timing_scope="execute_model_cuda")


def as_lines(records: Iterator[dict[str, Any]]) -> bytes:
    """The records as JSON lines."""
    return "".join(json.dumps(each) + "\n" for each in records).encode()

"""The names by which vLLM 0.32.0 publishes what its scheduler does, for Prometheus; the same for a simulation.

A counter's name is that of its sample. Of the labels, `model_name` names the model and `engine` numbers the replicas.
"""

from __future__ import annotations

VERSION = "vllm 0.32.0"

GENERATION = "vllm:generation_tokens_total"
ITERATION = "vllm:iteration_tokens_total"
ITERATIONS = f"{ITERATION}_count"
PROMPT = "vllm:prompt_tokens_total"
PREEMPTIONS = "vllm:num_preemptions_total"
QUERIES = "vllm:prefix_cache_queries_total"
HITS = "vllm:prefix_cache_hits_total"
SUCCESS = "vllm:request_success_total"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
WAITING_BY_REASON = "vllm:num_requests_waiting_by_reason"
CACHE_USAGE = "vllm:kv_cache_usage_perc"
CACHE_CONFIG = "vllm:cache_config_info"

ABOUT = {
    GENERATION: "Tokens delivered.",
    ITERATION: "Tokens of each step; its count is the number of steps.",
    PROMPT: "Prompt tokens of requests that got their first token.",
    PREEMPTIONS: "How often a running request lost its pages.",
    QUERIES: "Tokens looked up in the prefix cache.",
    HITS: "Tokens found in the prefix cache.",
    SUCCESS: "Requests that finished, by how.",
    RUNNING: "Requests that have a slot.",
    WAITING: "Requests that wait for one.",
    WAITING_BY_REASON: "The same by reason: for capacity, or deferred by a rule.",
    CACHE_USAGE: "Share of the pages that are held, 0 to 1.",
    CACHE_CONFIG: "What the cache is.",
}
COUNTERS = (GENERATION, ITERATIONS, PROMPT, PREEMPTIONS, QUERIES, HITS)
"""What is read from a running engine as growth."""
GAUGES = (RUNNING, WAITING, WAITING_BY_REASON, CACHE_USAGE)
"""What is read as it stands when asked: samples."""

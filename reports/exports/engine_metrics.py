"""Names of the Prometheus metrics of vLLM 0.32.0's scheduler, which a simulation exports too.

A counter's name is that of its sample (`..._total`). The label `model_name` is the model, `engine` the number of the
replica.
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
"""Metrics of which the growth between two scrapes is read."""
GAUGES = (RUNNING, WAITING, WAITING_BY_REASON, CACHE_USAGE)
"""Metrics of which the value at a scrape is read."""

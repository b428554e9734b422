"""Random small cases in every mode of the engine, each within its limits: any request could run alone."""

from __future__ import annotations

from random import Random


def case(seed):
    """The same case for the same seed."""
    rng = Random(f"parity case {seed}")
    size = rng.choice([1, 2, 4, 16])
    chunked = rng.random() < 0.8
    longest = rng.choice([12, 40, 90])
    budget = rng.choice([1, 3, 8, 24, 64, 1000]) if chunked else rng.choice([2 * longest, 1000])
    config = {
        "max_num_seqs": min(rng.choice([1, 2, 3, 8, 16]), budget),
        "max_num_batched_tokens": budget,
        "max_model_len": rng.choice([longest + rng.randint(2, 20), 4096]) if chunked else 2 * longest,
        "block_size": size,
        "enable_prefix_caching": rng.random() < 0.6,
        "enable_chunked_prefill": chunked,
        "policy": rng.choice(["fcfs", "fcfs", "priority"]),
        "long_prefill_token_threshold": rng.choice([0, 0, 2, 7]),
        "long_prefill_token_threshold_adaptive": rng.random() < 0.4,
        "scheduler_reserve_full_isl": rng.random() < 0.6,
        "watermark": rng.choice([0.0, 0.0, 0.1, 0.3]),
        "max_num_active_seqs": rng.choice([None, None, 1, 2]),
        "async_scheduling": rng.random() < 0.5,
    }
    if config["max_num_active_seqs"]:
        config["max_num_active_seqs"] = min(config["max_num_active_seqs"], config["max_num_seqs"])
    requests = [request(rng, place, longest, config) for place in range(rng.randint(1, 20))]
    if rng.random() < 0.2:
        config["cost"] = {"t0": 0.006, "t_tok": 2e-5, "t_seq": 5e-5, "t_ctx": 2e-7}
        for asked in requests:
            asked["arrival_time"] = asked.pop("arrival_step") * 0.0045
    worst = max(pages(asked, config) for asked in requests)
    config["num_gpu_blocks"] = 1 + worst + rng.choice([0, 0, 1, 2, worst // 2, worst, 5 * worst, 1000])
    return {"config": config, "requests": requests}


def request(rng, place, longest, config):
    """One request; prompts share heads, two token ids long apart, or are like no other."""
    length = rng.randint(1, rng.choice([3, longest // 3, longest]))
    asked = {
        "id": f"r{place:03}",
        "max_tokens": rng.randint(1, rng.choice([3, 20, 80])),
        "arrival_step": rng.choice([0, rng.randint(0, 10), rng.randint(0, 200)]),
        "priority": rng.choice([0, 0, 1, 2]),
    }
    if rng.random() < 0.7:
        same = rng.randint(0, length)
        asked["prompt_token_ids"] = [1] * same + [rng.randint(1, 2) for _ in range(length - same)]
    else:
        asked["prompt_len"] = length
    return asked


def pages(asked, config):
    """Pages that a request holds at most."""
    prompt = asked.get("prompt_len") or len(asked["prompt_token_ids"])
    most = min(prompt + asked["max_tokens"], config["max_model_len"]) - 1
    return -(-max(most, prompt) // config["block_size"])

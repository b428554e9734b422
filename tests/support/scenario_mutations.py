"""Scenarios that are valid by construction, from a seeded stream, and the same with one key broken.

What is put in a key is small, or far beyond what is taken for meant: a run of a million requests is allowed, and
takes minutes. Rates are low for the same reason: an hour of them is over soon.
"""

import copy

NASTY = (
    None, True, False, "", "x", "a.b", " 1", "\u0663", "nan", "inf", "1e999", "5", "5 parsecs", "1GiB",
    -1, 0, 1, 2, 3, 7, 100, 0.5, 1.5, -0.0, 1e-300, 1e-9, 0.999999, 1e18, 1e308, -1e308, 3000, 10**7, 10**9,
    2 * 10**9, 2**31, 2**31 + 1, 2**53, 10**15, 2**62, 2**63, 10**30, -(2**63),
    "0s", "1ns", "1us", "7ms", "1s", "1h", "1000h", "1000000h", "2562047h", "1e30h", "1e-9ns", "-1s",
    [], {}, [1], ["a"], [None], [0, 0], ["0s", "1ns"], ["1s", "1s"], [[[[]]]], {"a": 1}, {1: 2},
    {"fixed": 10**9}, {"fixed": 1}, {"sjf": {"error": 1e308}},
    "fcfs", "sjf", "fair", "priority", "random", "least_tokens", "vllm",
)  # fmt: skip
UNKNOWN = ("x", "", "slotz", "requests", "workload", "output", "1")

ARRIVALS = (
    {"poisson": {"rate": 2}},
    {"gamma": {"rate": 2, "cv": 2.0}},
    {"weibull": {"rate": 2, "shape": 0.7}},
    {"batches": {"rate": 2, "size": 4}},
    {"ticks": {"arrivals": {"poisson": {"rate": 2}}, "every": "1s"}},
    {"markov": {"states": [{"rate": 1, "lasts": "1s"}, {"rate": 4, "lasts": "1s"}]}},
    {"diurnal": {"rate": 2, "amplitude": 0.5, "period": "10s"}},
    {"piecewise": {"pieces": [{"rate": 1, "lasts": "1s"}, {"rate": 4, "lasts": "1s"}]}},
)
LENGTHS = (
    7,
    {"uniform": {"minimum": 1, "maximum": 40}},
    {"lognormal": {"mean": 20, "cv": 1.0}},
    {"exponential": {"mean": 20}},
    {"geometric": {"mean": 20}},
    {"pareto": {"minimum": 5, "alpha": 2.5}},
    {"zipf": {"alpha": 1.5, "maximum": 50}},
    {"bimodal": {"first": 5, "second": 50, "weight": 0.8}},
    {"empirical": {"values": [3, 9, 40], "weights": [1, 2, 1]}},
    {"quantiles": {"shares": [0, 0.5, 1], "values": [1, 10, 50]}},
)
COSTS = (
    {"unit": "5ms"},
    {"affine": {"base": "5ms", "per_sequence": "100us", "per_context_token": "10ns", "host": "1ms"}},
    {
        "roofline": {
            "weight_pass": "10ms",
            "per_token": "40us",
            "per_context_token": "50ns",
            "graph_sizes": [1, 8, 64],
        }
    },
    {"shape": {"model": "llama-3.1-8b", "device": "h100-sxm", "tensor_parallel": 1}},
    {"profile": "h100-llama-3.1-8b"},
)
POLICIES = (
    "fcfs",
    "priority",
    "random",
    "shortest_prompt",
    {"sjf": {"predict": "exact", "error": 0.5}},
    {"fair": {"order": "sjf", "max_wait": "1s"}},
    {"srpt": {"error": 0.5, "preemptive": True}},
    {"longest": {"error": 0}},
    {"edf": {"within": "1s", "tenants": {"a": {"within": "2s"}}}},
    {"least_slack": {"within": "1s", "tenants": {}, "token_time": "20ms"}},
    {"hrrn": {"error": 0.5}},
    {"mlfq": {"quantum": 4, "ratio": 2, "levels": 3, "prompt_tokens": 64, "preemptive": True}},
    {"vtc": {"order": "fcfs", "prompt_weight": 1, "output_weight": 2, "lift": True, "prepay": True}},
    {"drr": {"order": "fcfs", "quantum": 50, "error": 0.5}},
    {"max_wait": {"order": "sjf", "max_wait": "1s"}},
    {"aging": {"order": {"sjf": {"error": 0.1}}, "unit": "50ms"}},
    {"tenant_slots": {"order": "fcfs", "slots": 2, "tenants": {"a": 1}}},
    {"tenant_rate": {"order": "fcfs", "rate": 1000, "burst": 4000, "tenants": {}}},
    {"tenant_quota": {"order": "fcfs", "requests": 20, "window": "1s"}},
)
ENGINES = (
    {},
    {"batching": "static"},
    {"memory": "contiguous", "page_size": 16},
    {"evict": "after", "harvest": "next"},
    {"async_scheduling": True},
    {"admission": "peak"},
    {"admission": {"ratio": {"initial": 0.5, "decay_steps": 100}}},
    {"admission": {"quantile": {"epsilon": 0.1, "window": 50, "every": 2}}},
    {"preemption": "swap", "pages": 60},
    {"watermark": 0.1, "reserve_full_prompt": False, "pages": 60},
    {"prefix_cache": True, "share": "all"},
    {"chunk_limit": 16, "chunk_limit_adapts": True},
    {"max_active": 2, "admit_every": 3, "max_model_len": 200, "victim": "last_admitted"},
    {"preset": "vllm"},
    {"macro": False},
)
CLIENTS = (
    None,
    {"closed": {"clients": 3, "think": "10ms"}},
    {"window": 4},
    {"window": 4, "delay": "5ms"},
    {"retry": {"attempts": 3, "initial": "10ms", "factor": 2, "max": "1s", "jitter": 0.5}},
)
CLUSTERS = (
    None,
    {"replicas": 3, "router": "power_of_two"},
    {"replicas": [{"count": 2, "engine": {"slots": 4}}, {"engine": {"slots": 8}, "cost": {"unit": "7ms"}}]},
    {"prefill": {"replicas": 2}, "decode": {"replicas": 1}, "transfer": {"latency": "1ms", "per_token": "1us"}},
    {"failures": {"mtbf": "10s", "mttr": "1s", "work": "resumed"}},
    {"replicas": 2, "failures": {"outages": [{"replica": 1, "at": "1s", "lasts": "1s"}], "work": "moved"}},
)
TRANSFORMS = (
    {"between": ["0s", "100s"]},
    {"first": 30},
    {"sample": 0.8},
    {"thin": 0.8},
    {"rate": 4},
    {"scale_rate": 2},
    {"resample": "3s"},
    {"jitter": "1s"},
    {"warm_up": "10ms"},
    {"cap_lengths": {"prompt": 30, "output": 20}},
    "shuffle_lengths",
    {"redraw_arrivals": {"gamma": {"cv": 2}}},
)


def scenario(random):
    """A scenario that runs in well under a second."""
    made = {"workload": workload(random), "cost": one(COSTS, random), "policy": one(POLICIES, random)}
    made["engine"] = {"slots": 6, "token_budget": 512, "pages": 400, **one(ENGINES, random)}
    for key, choices in (("clients", CLIENTS), ("cluster", CLUSTERS)):
        value = one(choices, random)
        if value is not None:
            made[key] = value
    if random.random() < 0.3:
        made["limits"] = {"queue": 20, "queue_timeout": "1s", "timeout": "10s"}
    if random.random() < 0.3:
        made["objectives"] = {"ttft": "1s", "tpot": "50ms", "e2e": "5s", "wait": "1s", "itl": "100ms"}
    if random.random() < 0.3:
        made["seed"] = 7
    return made


def workload(random):
    """Some thirty requests, from laws, written out, or of two kinds."""
    kind = random.random()
    if kind < 0.25:
        return {"requests": [line(random) for _ in range(5)]}
    if kind < 0.35:
        return {"merge": {"a": {"synthetic": synthetic(random)}, "b": {"requests": [{"output": 5}]}}}
    made = {"synthetic": synthetic(random)}
    if random.random() < 0.5:
        made["transforms"] = [one(TRANSFORMS, random) for _ in range(2)]
    else:
        made |= {"between": ["0s", "100s"], "first": 30, "scale_rate": 1.5}
    return made


def synthetic(random):
    """A workload drawn from laws."""
    made = {"arrivals": one(ARRIVALS, random), "prompt": one(LENGTHS, random), "output": one(LENGTHS, random)}
    made |= {"requests": 30} if random.random() < 0.7 else {"duration": "15s"}
    extra = random.random()
    if extra < 0.2:
        made["sessions"] = {"turns": {"uniform": {"minimum": 1, "maximum": 4}}, "think": "1s", "context": 500}
    elif extra < 0.4:
        made |= {"prefixes": {"groups": 3, "tokens": 40, "skew": 1.0}, "block_size": 16}
    elif extra < 0.5:
        made["population"] = {"tenants": 3, "skew": 1.0}
    elif extra < 0.6:
        made["tenants"] = {"a": {"weight": 2}, "b": {"output": 9, "patience": {"lasts": "2s", "share": 0.5}}}
    elif extra < 0.7:
        made["correlation"] = 0.5
    return made


def line(random):
    """One request written out."""
    made = {"prompt": 20, "output": 12, "arrival": "3ms", "tenant": "a", "priority": 1}
    if random.random() < 0.3:
        made |= {"max_output": 20, "cancel_after": "1s", "timeout": "2s", "queue_timeout": "1s", "cancel_tokens": 9}
    if random.random() < 0.3:
        made |= {"prompt": 4, "tokens": [1, 2, 3, 4]}
    return made


def one(choices, random):
    """One of the choices, as a copy."""
    return copy.deepcopy(choices[random.integers(len(choices))])


def broken(whole, random):
    """The same with one key broken, and which."""
    made = copy.deepcopy(whole)
    holder, key, path = one_of(places(made), random)
    value = one(NASTY, random)
    if random.random() < 0.1 and isinstance(holder, dict):
        key = one(UNKNOWN, random)
        path = (*path[:-1], key)
    elif random.random() < 0.05 and isinstance(holder, dict):
        del holder[key]
        return made, ".".join(map(str, path)), "left out"
    holder[key] = value
    return made, ".".join(map(str, path)), value


def one_of(choices, random):
    """One of a list of tuples."""
    return choices[random.integers(len(choices))]


def places(value, path=()):
    """Every (mapping or list, key, path) inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, inner in items:
        found.append((value, key, (*path, key)))
        found += places(inner, (*path, key))
    return found

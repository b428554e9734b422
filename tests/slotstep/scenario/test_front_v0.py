"""The presets of synchronous engines that prefill apart, vLLM's V0 and S-LoRA: steps of 1 ms, answers by hand."""

from __future__ import annotations

import pytest

import slotstep
from traces.errors import BadInput

FEW = [{"prompt": 5, "output": 5}]


def scenario(preset, requests, **engine):
    return slotstep.parse(
        {"workload": {"requests": requests}, "cost": {"unit": "1ms"}, "engine": {"preset": preset, **engine}}
    )


def ran(preset, requests, **engine):
    """The requests, with times in ms."""
    found = slotstep.run(scenario(preset, requests, **engine))
    frame = found.requests
    return frame.assign(ttft=frame.ttft_s * 1e3, e2e=frame.e2e_s * 1e3, gap=frame.max_itl_s * 1e3), found.summary


# ------------------------------------------------------------------ S-LoRA


def test_defaults_of_the_router():
    """`slora/server/api_server.py`: a prefill takes a sixth of the memory, or the longest request if that is more."""
    engine = scenario("s-lora", FEW).engine
    assert (engine.pages, engine.page_size, engine.slots, engine.max_model_len) == (6000, 1, 1000, 3072)
    assert (engine.apart.max_prefill_tokens, engine.apart.prefill_interval) == (3072, 10)
    assert scenario("s-lora", FEW, max_total_token_num=60_000).engine.apart.max_prefill_tokens == 10_000


def test_decodes_stand_still_in_a_prefill_which_comes_every_eleventh_pass_at_the_earliest():
    """a's tokens are there at 1 and, decoded, at 2 to 11. b came at 2.5 and is prefilled from 11 to 12.

    c came at 12.5: ten decodes follow the prefill of b, and its own ends at 23. Both times a has a gap of 2.
    """
    requests = [
        {"prompt": 10, "output": 30},
        {"prompt": 10, "output": 2, "arrival": "2500us"},
        {"prompt": 10, "output": 1, "arrival": "12500us"},
    ]
    frame, _ = ran("s-lora", requests)
    assert frame.ttft.tolist() == pytest.approx([1, 9.5, 10.5])
    assert frame.e2e.tolist() == pytest.approx([32, 10.5, 10.5])
    assert frame.gap[0] == pytest.approx(2)


def test_an_engine_without_work_prefills_at_once():
    """a is prefilled from 0 to 1 and needs no more; b, which came meanwhile, follows."""
    requests = [{"prompt": 10, "output": 1}, {"prompt": 10, "output": 1, "arrival": "500us"}]
    assert ran("s-lora", requests)[0].ttft.tolist() == pytest.approx([1, 1.5])


def test_a_request_is_admitted_once_the_memory_lasts_to_all_limits():
    """Two requests of 20 + 40 in 100 positions. With g tokens of a there, b enters if the peak is below 100:
    21 + (20 + g) + 2 x (39 - g), when a leaves. That is so from g = 20 on, after pass 20.
    """
    requests = [{"prompt": 20, "output": 40}, {"prompt": 20, "output": 40}]
    frame, summary = ran("s-lora", requests, max_total_token_num=100)
    assert frame.ttft.tolist() == pytest.approx([1, 21])
    assert summary["preemptions"] == 0


def test_a_prefill_takes_no_more_prompts_than_fit_its_budget():
    """Three prompts of 20 in passes of 50 tokens: the third is in the next one, ten decodes later."""
    requests = [{"prompt": 20, "output": 30}] * 3
    frame, _ = ran("s-lora", requests, batch_max_tokens=50, max_req_total_len=50)
    assert frame.ttft.tolist() == pytest.approx([1, 1, 12])


def test_the_scheduler_option_names_the_order():
    assert scenario("s-lora", FEW, scheduler="vtc_fair").policy.name == "vtc"
    with pytest.raises(BadInput, match=r"engine.scheduler: found 'pets'; expected slora or vtc_fair"):
        scenario("s-lora", FEW, scheduler="pets")


# ------------------------------------------------------------------ vLLM's V0


def test_defaults_of_the_v0_server():
    engine = scenario("vllm-v0", FEW, max_model_len=4096).engine
    assert (engine.slots, engine.page_size, engine.watermark) == (256, 16, 0.01)
    assert (engine.apart.max_prefill_tokens, engine.apart.retraction) == (4096, "latest")
    with pytest.raises(BadInput, match=r"max_num_batched_tokens \(512\) is smaller than max_model_len \(4096\)"):
        scenario("vllm-v0", FEW, max_model_len=4096, max_num_batched_tokens=512)


def test_a_prompt_goes_before_all_decodes():
    """b comes at 2.5, in the second decode of a: it is prefilled from 3 to 4, and a waits."""
    requests = [{"prompt": 10, "output": 5}, {"prompt": 10, "output": 1, "arrival": "2500us"}]
    frame, _ = ran("vllm-v0", requests)
    assert frame.ttft.tolist() == pytest.approx([1, 1.5])
    assert (frame.e2e[0], frame.gap[0]) == pytest.approx((6, 2))


def test_the_last_admitted_is_preempted_and_recomputed():
    """Three blocks of 16. Two prompts of 16 are prefilled in one pass; their first decodes need a block each, and one
    is free. b is preempted with one token, waits until a ends with its 20th token at 20, and has its second at 21.
    """
    requests = [{"prompt": 16, "output": 20}, {"prompt": 16, "output": 20}]
    frame, summary = ran("vllm-v0", requests, num_gpu_blocks=3)
    assert frame.ttft.tolist() == pytest.approx([1, 1])
    assert frame.e2e.tolist() == pytest.approx([20, 39])
    assert (summary["preemptions"], summary["tokens"]["recomputed"]) == (1, 16)


def test_the_preempted_one_is_first_in_the_queue_again():
    """As before. c comes at 1.5 and would fit into the free block, but b goes first: both are prefilled at 20."""
    requests = [*[{"prompt": 16, "output": 20}] * 2, {"prompt": 16, "output": 1, "arrival": "1500us"}]
    frame, _ = ran("vllm-v0", requests, num_gpu_blocks=3)
    assert frame.e2e.tolist() == pytest.approx([20, 39, 19.5])


@pytest.mark.parametrize(("prompt", "ttft"), [(128, 1), (129, 6)])
def test_an_admission_leaves_one_in_a_hundred_blocks_free(prompt, ttft):
    """a takes 190 of 200 blocks. b may take 8, which leaves 2; with 9 it waits for the end of a at 5."""
    requests = [{"prompt": 190 * 16, "output": 5}, {"prompt": prompt, "output": 1}]
    frame, _ = ran("vllm-v0", requests, num_gpu_blocks=200, max_num_batched_tokens=8192)
    assert frame.ttft.tolist() == pytest.approx([1, ttft])


@pytest.mark.parametrize("preset", ["s-lora", "vllm-v0"])
def test_what_is_not_modelled_is_refused(preset):
    with pytest.raises(BadInput, match="expected neither"):
        scenario(preset, FEW, prefix_cache=True)


# ------------------------------------------------------------------ TensorRT-LLM


def test_prompts_wait_for_a_larger_batch():
    """b comes at 2.5. A step with it has 11 of 50 tokens, so the plans of 3 to 7 hold it back: it is there at 9."""
    requests = [{"prompt": 10, "output": 30}, {"prompt": 10, "output": 1, "arrival": "2500us"}]
    waiting = {"batch_wait_timeout_iters": 5, "batch_wait_max_tokens_ratio": 0.5}
    frame, _ = ran("trtllm", requests, max_num_tokens=100, disable_overlap_scheduler=True, **waiting)
    assert frame.ttft.tolist() == pytest.approx([1, 6.5])
    assert frame.e2e[0] == pytest.approx(30)


def test_zero_is_off():
    engine = scenario("trtllm", FEW, batch_wait_timeout_iters=0, batch_wait_max_tokens_ratio=0).engine
    assert (engine.batch_wait_steps, engine.batch_wait_ratio) == (None, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_wait_timeout_iters": 5}, "one without the other has no effect"),
        ({"batch_wait_max_tokens_ratio": 0.5}, "one without the other has no effect"),
        (
            {
                "batch_wait_timeout_iters": 5,
                "batch_wait_max_tokens_ratio": 0.5,
                "capacity_scheduler_policy": "MAX_UTILIZATION",
            },
            "batch_wait needs an admission rule that reserves",
        ),
        (
            {"batch_wait_timeout_iters": 5, "batch_wait_max_tokens_ratio": 0.5, "enable_chunked_prefill": True},
            "batch_wait needs prompts that are not chunked",
        ),
    ],
)
def test_what_its_waiting_needs(settings, message):
    with pytest.raises(BadInput, match=message):
        scenario("trtllm", FEW, **settings)

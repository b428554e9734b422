"""Profiles of the kept database, where the optional package is installed, and what is said where it is not."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from calibrate.database import package
from calibrate.database.profile import from_database, identity
from calibrate.database.request import Request
from calibrate.profiles.profile import Profile
from sim.cost.shape import Shape

pytest.importorskip("aiconfigurator_core", reason="the optional package aiconfigurator-core is not installed")


def of(model: str = "llama-3.1-8b", system: str = "h100_sxm", backend: str = "vllm", **more: Any) -> Profile:
    """The profile of a request."""
    return from_database(Request(model, system, backend, **more), name="made", date="2026-11-30")


def refusal(model: str = "llama-3.1-8b", system: str = "h100_sxm", backend: str = "vllm", **more: Any) -> str:
    """The line with which a request is refused."""
    with pytest.raises(ValueError, match=r".") as caught:
        of(model, system, backend, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_a_dense_model_is_within_a_percent_of_direct_queries_at_the_median_and_three_at_the_99th_percentile() -> None:
    made = of()
    for kind in ("decode", "prefill", "mixed"):
        assert made.content["residuals"][f"{kind}_median"] < 0.01
        assert made.content["residuals"][f"{kind}_p99"] < 0.03
    assert made.content["software"]["vllm"] == "0.24.0"
    assert "host time between steps" in made.content["not_included"]


def test_the_weights_are_those_of_the_parameters() -> None:
    # 8.03e9 parameters of two bytes, on one device and on two.
    assert of().content["details"]["weights"] == pytest.approx(2 * 8.03e9, rel=0.001)
    assert of(tensor_parallel=2).content["details"]["weights"] == pytest.approx(8.03e9, rel=0.001)


def test_a_step_reads_the_weights_at_no_more_than_the_bandwidth() -> None:
    batch = Shape()
    batch.decodes, batch.context = 1, 100
    assert of().cost().step(batch) > 1e9 * 2 * 7.5e9 / 3.35e12


@pytest.mark.slow
def test_attention_of_prompts_that_was_not_measured_in_8_bits_is_taken_in_16() -> None:
    assert of("DeepSeek-R1", "b200_sxm", "sglang", tensor_parallel=8).content["details"]["quantisation"] == {
        "gemm": "fp8_block",
        "moe": "fp8_block",
        "kv": "fp8",
        "attention": "bfloat16",
    }


@pytest.mark.slow
def test_experts_are_divided_where_shared_ones_were_not_measured() -> None:
    made = of("gpt-oss-120b", "h100_sxm", "trtllm", tensor_parallel=2)
    assert made.content["details"]["experts"] == {"tensor_parallel": 1, "expert_parallel": 2}
    assert any(each.startswith("a certain number of pages") for each in made.content["not_included"])


def test_a_model_of_ours_that_the_package_does_not_ship_is_described_to_it_by_its_sizes() -> None:
    assert of("qwen3-14b").content["model"]["name"] == "qwen3-14b"


def test_a_folder_with_a_config_is_a_model(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 4, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, **sizes}
    config |= {"intermediate_size": 14336, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    whole, part = of(), of(str(tmp_path))
    step = Shape()
    step.add_chunk(0, 1024)
    # 4 layers of 32, and the output head.
    assert 0.1 < part.cost().step(step) / whole.cost().step(step) < 0.2


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"model": "llama-3.1-9b"}, "did you mean llama-3.1-8b?"),
        ({"system": "h100_pcie"}, "measured systems: a100_sxm, "),
        ({"backend": "vlm"}, "measured on h100_sxm: vllm, sglang, trtllm"),
        ({"version": "0.9"}, "listed: 0.24.0"),
        ({"gemm": "fp7"}, "its names: bfloat16, "),
        ({"system": "a100_sxm", "gemm": "fp8"}, "measured there: gemm bfloat16; moe bfloat16; kv bfloat16"),
        ({"model": "llama-3.1-70b"}, "the weights alone take at least 2 such devices"),
        ({"model": "Qwen3.5-397B-A17B", "tensor_parallel": 8}, "does not fit"),
        ({"model": "gpt-oss-120b", "tensor_parallel": 2, "expert_parallel": 3}, "expected 2"),
    ],
)
def test_what_there_is_not_is_said_in_one_line_with_what_there_is(request_: dict[str, Any], said: str) -> None:
    assert said in refusal(**request_)


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(package, "version", missing)
    assert "pip install 'slotstep[aiconfigurator]'" in refusal()


def test_another_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "version", lambda name: "0.13.1")
    assert "expected 0.12" in refusal()


def test_the_identity_of_a_request_changes_with_what_its_profile_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Request("llama-3.1-8b", "h100_sxm", "vllm")
    assert identity(one) == identity(Request("llama-3.1-8b", "h100_sxm", "vllm", version="0.24.0"))
    assert identity(one) != identity(Request("llama-3.1-8b", "h100_sxm", "vllm", kv="fp8"))
    before = identity(one)
    monkeypatch.setattr("calibrate.database.profile.SAMPLER", 99)
    assert identity(one) != before

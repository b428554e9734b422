"""The timed products are those of a step, and their bytes those of its weights."""

from __future__ import annotations

import pytest
import torch

from calibrate.gpu.product_bench import product_bench, products
from calibrate.models.architecture import BYTES
from calibrate.models.decoder_shape import ModelShape, model_shape


def test_the_products_of_llama_3_1_8b_are_all_its_weights_but_norms_and_embedding() -> None:
    """8.03 billion parameters (model card), of which 0.53 are the embedding and under a million norms."""
    shape = model_shape("llama-3.1-8b")
    sizes = {name: outputs * inputs for name, (outputs, inputs) in products(shape).items()}
    layers = 32 * (sizes["qkv"] + sizes["out"] + sizes["gate_up"] + sizes["down"])
    assert layers + 2 * sizes["head"] == pytest.approx(8.03e9, rel=1e-3)


def test_each_product_is_timed_at_each_batch() -> None:
    shape = ModelShape("small", 2, 64, 160, 4, 2, 16, 320, dtype="float32", max_model_len=256)
    found = list(product_bench(shape, torch.device("cpu"), "float32", (1, 4)))
    assert [(row["product"], row["batch"]) for row in found] == [
        (name, rows) for name in ("qkv", "out", "gate_up", "down", "head") for rows in (1, 4)
    ]
    for row in found:
        assert row["seconds"] * row["bytes_per_s"] == pytest.approx(row["outputs"] * row["inputs"] * BYTES["float32"])

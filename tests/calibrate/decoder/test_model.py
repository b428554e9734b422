"""The decoder against an independent one: Hugging Face's, run without a cache over whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from calibrate.decoder.attention.torch_reference import TorchAttention
from calibrate.decoder.attention.triton_backend import TritonAttention
from calibrate.decoder.engine.protocol import CannotRun
from calibrate.decoder.model import ops_torch, ops_triton
from calibrate.decoder.model.attention_metadata import AttentionMetadata, Cache
from calibrate.decoder.model.decoder import Decoder
from calibrate.gpu.test_batches import error
from calibrate.models.decoder_shape import ModelShape, model_shape
from calibrate.models.weights import load_weights, random_weights

CPU = torch.device("cpu")
SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


@contextmanager
def local_stream(seed: int) -> Iterator[None]:
    """PyTorch's global stream, seeded here and put back after."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def reference(kind: str, **sizes: Any) -> Any:
    """A small random model of Hugging Face's, its matrices large enough that every part matters."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(**(SIZES | sizes))
    with local_stream(seed=1):
        model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
        for name, weight in model.named_parameters():
            spread = weight.shape[-1] ** -0.5 if weight.ndim == 2 else 0.2
            torch.nn.init.normal_(weight, mean=float(name.endswith("norm.weight")), std=spread)
    return model


def saved(model: Any, folder: Path, shard: str = "100KB") -> Path:
    """A checkpoint as Hugging Face writes it, in several files."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    model.save_pretrained(folder, max_shard_size=shard)
    return folder


def scores_of(model: Any, tokens: Tensor) -> Tensor:
    with torch.inference_mode():
        scores: Tensor = model(tokens[None], use_cache=False).logits[0]
    return scores


KINDS: dict[str, Callable[[], Any]] = {
    "llama": lambda: reference("Llama", rope_parameters=STRETCHED),
    "llama-tied": lambda: reference("Llama", tie_word_embeddings=True, num_key_value_heads=4),
    "qwen2": lambda: reference("Qwen2", num_key_value_heads=1, head_dim=16),
}


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Tensor, Tensor]:
    """A folder with a checkpoint, some tokens, and the scores that the reference gives them."""
    model = KINDS[request.param]()
    folder = saved(model, tmp_path_factory.mktemp("checkpoint"))
    tokens = torch.randint(SIZES["vocab_size"], (61,), generator=torch.Generator().manual_seed(2))
    return folder, tokens, scores_of(model, tokens)


def decoder(shape: ModelShape, weights: Any, pages: int = 24, page_size: int = 8, triton: bool = False) -> Decoder:
    """A decoder whose whole cache is not a number."""
    cache = Cache.empty(shape, pages, page_size, torch.float32, CPU)
    cache.data.fill_(float("nan"))
    if triton:
        return Decoder(shape, weights, cache, TritonAttention(shape, 4, CPU, splits=2), ops_triton, 256)
    return Decoder(shape, weights, cache, TorchAttention(shape, 4), ops_torch, 256)


def served(model: Decoder, tokens: Tensor, pieces: list[int], table: list[int], start: int = 0) -> Tensor:
    """Scores of one sequence from position `start` on, computed in pieces: chunks, and tokens one by one."""
    found, size = [], model.cache.data.shape[4]
    first = start
    for count in pieces:
        span = start + count
        batch = AttentionMetadata(
            tables=torch.tensor([table], dtype=torch.int32),
            lengths=torch.tensor([span], dtype=torch.int32),
            positions=torch.arange(start, span, dtype=torch.int32),
            owners=torch.zeros(count, dtype=torch.int32),
            offsets=torch.tensor([0, count] if count > 1 else [0], dtype=torch.int32),
            counts=(count,),
            spans=(span,),
            page_size=size,
            decodes=int(count == 1),
        )
        with torch.inference_mode():
            found.append(model.logits(tokens[start - first : span - first], batch))
        start = span
    return torch.cat(found)


PIECES = [20, 7, 26] + [1] * 8
TABLE = [5, 0, 11, 3, 17, 2, 9, 20]


@pytest.mark.slow
def test_paged_chunks_and_decodes_equal_the_dense_model(checkpoint: tuple[Path, Tensor, Tensor]) -> None:
    folder, tokens, right = checkpoint
    shape = model_shape(str(folder))
    model = decoder(shape, load_weights(shape, folder, torch.float32, CPU))
    assert error(served(model, tokens, PIECES, TABLE), right.double()) < 1e-5
    assert error(served(model, tokens, [61], TABLE), right.double()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["llama"], indirect=True)
def test_the_kernels_equal_the_dense_model(checkpoint: tuple[Path, Tensor, Tensor]) -> None:
    folder, tokens, right = checkpoint
    shape = model_shape(str(folder))
    model = decoder(shape, load_weights(shape, folder, torch.float32, CPU), triton=True)
    assert error(served(model, tokens[:20], [9, 9, 1, 1], TABLE), right[:20].double()) < 1e-5


@pytest.fixture(scope="module")
def small() -> tuple[ModelShape, Any]:
    shape = ModelShape("small", 2, 64, 160, 4, 2, 16, 320, dtype="float32", max_model_len=256)
    return shape, random_weights(shape, 0, torch.float32, CPU)


TOKENS = torch.arange(61) * 7 % 320


@pytest.mark.slow
def test_other_and_dirty_pages_change_no_bit(small: tuple[ModelShape, Any]) -> None:
    model = decoder(*small)
    first = served(model, TOKENS, PIECES, TABLE)
    others = [12, 1, 4, 6, 7, 8, 10, 13]
    assert torch.equal(served(model, TOKENS, PIECES, others), first)
    served(model, TOKENS.flip(0), PIECES, TABLE)
    assert torch.equal(served(model, TOKENS, PIECES, TABLE[::-1]), first)


def test_a_prefix_is_read_in_the_pages_of_another_sequence(small: tuple[ModelShape, Any]) -> None:
    model = decoder(*small)
    served(model, TOKENS, [61], TABLE)
    other = torch.cat((TOKENS[:24], TOKENS[24:].flip(0)))
    alone = served(decoder(*small), other, [61], TABLE)[24:]
    shared = served(model, other[24:], [30, 7], [*TABLE[:3], 12, 1, 4, 6, 7], start=24)
    assert error(shared, alone.double()) < 1e-5


@pytest.mark.slow
def test_a_corrupted_table_is_noticed(small: tuple[ModelShape, Any]) -> None:
    """The negative control: one page in the table of the decodes is another one, and the comparison fails."""
    model = decoder(*small)
    right = served(model, TOKENS, [61], TABLE)[53:].double()
    served(model, TOKENS, [53], TABLE)
    last = TOKENS[53:]
    assert error(served(model, last, [1] * 8, TABLE, start=53), right) < 1e-5
    assert error(served(model, last, [1] * 8, [TABLE[1], *TABLE[1:]], start=53), right) > 1e-3
    assert error(served(model, last, [1] * 8, [23, *TABLE[1:]], start=53), right) == float("inf")


def test_random_weights_come_from_the_seed_and_are_never_zero(small: tuple[ModelShape, Any]) -> None:
    shape, weights = small
    again = random_weights(shape, 0, torch.float32, CPU)
    other = random_weights(shape, 1, torch.float32, CPU)
    for drawn, same, different in (
        (weights.embedding, again.embedding, other.embedding),
        (weights.blocks[1].down, again.blocks[1].down, other.blocks[1].down),
    ):
        assert torch.equal(drawn, same)
        assert not torch.equal(drawn, different)
        assert not (drawn == 0).any()
    assert not torch.equal(weights.blocks[0].down, weights.blocks[1].down)


def test_a_model_keeps_the_size_of_what_flows_through_it(small: tuple[ModelShape, Any]) -> None:
    scores = served(decoder(*small), TOKENS, [61], TABLE)
    assert 0.3 < float(scores.std()) < 3.0


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda tensors: tensors.pop("model.norm.weight"), "no tensor model.norm.weight; expected one of shape [64]"),
        (
            lambda tensors: tensors.update({"lm_head.weight": torch.ones(3, 64)}),
            "lm_head.weight has shape [3, 64]; expected [320, 64]",
        ),
        (
            lambda tensors: tensors.update({"model.layers.0.self_attn.q_norm.weight": torch.ones(16)}),
            "model.layers.0.self_attn.q_norm.weight is not part of a 2-layer",
        ),
    ],
)
def test_a_checkpoint_that_is_another_model_is_refused(
    tmp_path: Path, spoil: Callable[[dict[str, Tensor]], Any], complaint: str
) -> None:
    from safetensors.torch import load_file, save_file

    folder = saved(reference("Llama"), tmp_path, shard="1GB")
    tensors = load_file(folder / "model.safetensors")
    spoil(tensors)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CannotRun) as refusal:
        load_weights(model_shape(str(folder)), folder, torch.float32, CPU)
    assert complaint in str(refusal.value)
    assert str(folder) in str(refusal.value)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    shape = ModelShape("small", 1, 64, 64, 4, 2, 16, 32)
    with pytest.raises(CannotRun, match=r"no \*\.safetensors in it"):
        load_weights(shape, tmp_path, torch.float32, CPU)

"""Shapes of the models that are run: by name, or from a Hugging Face config.json. No torch, no weights.

All that decides what is computed; `calibrate.models.architecture` has what decides the cost, of more kinds of models.
The named shapes are those their makers publish in config.json; `tiny` is ours, small enough for a CPU.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from calibrate.models.registry import MODELS

DType = Literal["float32", "bfloat16", "float16"]

BYTES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretching of the rotary wavelengths (config.json, rope_type `llama3`).

    Wavelengths above original / low_factor positions are stretched by `factor`, those below original / high_factor
    are left, and between the two the stretch is interpolated.
    """

    factor: float
    low_factor: float
    high_factor: float
    original: int


@dataclass(frozen=True)
class ModelShape:
    """A Llama-style decoder: RMSNorm, rotary positions, grouped queries, SwiGLU; no weights.

    name           as it was asked for
    layers         transformer blocks
    hidden         width of the residual stream
    intermediate   width of the SwiGLU
    heads          query heads; `kv_heads` of keys and values, which divides it
    head_size      width of a head
    vocabulary     tokens
    dtype          of weights and cache, as published
    tied           the output head is the embedding
    qkv_bias       queries, keys and values have a bias (Qwen2)
    rope_base      base of the rotary wavelengths, and their scaling if any
    epsilon        of the RMS norms
    longest        positions it was made for

    Raises ValueError for sizes that do not go together.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    dtype: DType = "bfloat16"
    tied: bool = False
    qkv_bias: bool = False
    rope_base: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    epsilon: float = 1e-5
    longest: int = 131_072

    def __post_init__(self) -> None:
        sizes = ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_size", "vocabulary", "longest")
        for key in sizes:
            if getattr(self, key) < 1:
                raise ValueError(f"model {self.name}: {key} is {getattr(self, key)}; expected at least 1")
        if self.heads % self.kv_heads:
            raise ValueError(f"model {self.name}: kv_heads is {self.kv_heads}; expected a divisor of {self.heads}")
        if self.head_size % 2:
            raise ValueError(f"model {self.name}: head_size is {self.head_size}; expected an even number")

    @property
    def query_width(self) -> int:
        """Columns of the queries of one token."""
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Columns of the keys of one token, and of its values."""
        return self.kv_heads * self.head_size

    @property
    def layer_parameters(self) -> int:
        """Parameters of one block."""
        attention = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        bias = (self.query_width + 2 * self.kv_width) * self.qkv_bias
        return attention + bias + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; a tied head counts once."""
        tables = (1 if self.tied else 2) * self.vocabulary * self.hidden
        return self.layers * self.layer_parameters + self.hidden + tables

    @property
    def streamed_parameters(self) -> int:
        """Parameters a step reads in full: all but the embedding, of which it reads the rows of its tokens."""
        return self.layers * self.layer_parameters + self.hidden + self.vocabulary * self.hidden

    def weight_bytes(self, dtype: DType | None = None) -> int:
        """Bytes of all weights in this dtype, or the published one."""
        return self.parameters * BYTES[dtype or self.dtype]

    def kv_bytes_per_token(self, dtype: DType | None = None) -> int:
        """Bytes of keys and values of one position over all layers."""
        return 2 * self.layers * self.kv_width * BYTES[dtype or self.dtype]


LLAMA_3_1 = RopeScaling(factor=8.0, low_factor=1.0, high_factor=4.0, original=8192)


def published(name: str, **besides: Any) -> ModelShape:
    """A model whose sizes `calibrate.models.architecture` knows, with what its config.json says besides."""
    sizes = MODELS[name]
    return ModelShape(
        name=name,
        layers=sizes.layers,
        hidden=sizes.hidden,
        intermediate=sizes.intermediate,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_size=sizes.head_size,
        vocabulary=sizes.vocabulary,
        dtype=cast(DType, sizes.dtype),
        tied=sizes.tied,
        **besides,
    )


SHAPES: Mapping[str, ModelShape] = {
    shape.name: shape
    for shape in (
        ModelShape("tiny", 4, 512, 1536, 8, 2, 64, 8192, dtype="float32", longest=8192),
        published("llama-3.2-1b", rope_base=500_000.0, rope_scaling=replace(LLAMA_3_1, factor=32.0)),
        published("llama-3.1-8b", rope_base=500_000.0, rope_scaling=LLAMA_3_1),
        published("qwen2.5-7b", qkv_bias=True, rope_base=1_000_000.0, epsilon=1e-6),
        published("llama-2-7b", longest=4096),
    )
}

REFUSED: Mapping[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "use_sliding_window": (False,),
    "quantization_config": (None,),
}
"""Keys of config.json that would change the computation, and the values that do not; absent is fine too."""


def model_shape(model: str) -> ModelShape:
    """The shape of a named model, or of a config.json, or of a folder that holds one.

    Raises ValueError, naming the nearest known name, for a model that is neither.
    """
    if model in SHAPES:
        return SHAPES[model]
    path = Path(model).expanduser()
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return from_config(path)
    nearest = difflib.get_close_matches(model, SHAPES, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"model {model}: unknown, and no such file; did you mean {nearest}? "
        f"(expected {', '.join(SHAPES)} or the path of a config.json)"
    )


def from_config(path: Path) -> ModelShape:
    """The shape in a Hugging Face config.json of a Llama or Qwen2 model.

    Raises ValueError for a file that is not one, or for something in it that this engine does not compute.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: not readable as JSON ({error})") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path}: found {type(config).__name__}; expected the object of a config.json")
    kind = config.get("model_type")
    if kind not in ("llama", "qwen2"):
        raise ValueError(f"{path}: model_type is {kind!r}; expected llama or qwen2")
    for key, allowed in REFUSED.items():
        if key in config and config[key] not in allowed:
            raise ValueError(f"{path}: {key} is {config[key]!r}; expected {allowed[0]!r}")
    heads = whole(path, config, "num_attention_heads")
    hidden = whole(path, config, "hidden_size")
    rope = rotary(path, config)
    try:
        return ModelShape(
            name=str(path),
            layers=whole(path, config, "num_hidden_layers"),
            hidden=hidden,
            intermediate=whole(path, config, "intermediate_size"),
            heads=heads,
            kv_heads=whole(path, config, "num_key_value_heads", heads),
            head_size=whole(path, config, "head_dim", hidden // max(heads, 1)),
            vocabulary=whole(path, config, "vocab_size"),
            dtype=dtype_of(path, config),
            tied=bool(config.get("tie_word_embeddings", False)),
            qkv_bias=kind == "qwen2",
            rope_base=number(path, rope, "rope_theta", 10_000.0),
            rope_scaling=scaling(path, rope),
            epsilon=number(path, config, "rms_norm_eps", 1e-6),
            longest=whole(path, config, "max_position_embeddings"),
        )
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from None


def dtype_of(path: Path, config: Mapping[str, Any]) -> DType:
    """The dtype of a config; its key has two spellings, and float32 is what its absence means."""
    found = config.get("dtype") or config.get("torch_dtype") or "float32"
    if found not in BYTES:
        raise ValueError(f"{path}: dtype is {found!r}; expected {', '.join(BYTES)}")
    return cast(DType, found)


def rotary(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says of rotary positions, in its newer place or its older ones."""
    rope = {"rope_theta": config.get("rope_theta", 10_000.0)}
    for key in ("rope_scaling", "rope_parameters"):
        given = config.get(key) or {}
        if not isinstance(given, dict):
            raise ValueError(f"{path}: {key} is {given!r}; expected an object")
        rope |= given
    return rope


def scaling(path: Path, rope: Mapping[str, Any]) -> RopeScaling | None:
    """The scaling of the rotary wavelengths, None if there is none."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise ValueError(f"{path}: rope_type is {kind!r}; expected llama3, or no scaling")
    return RopeScaling(
        factor=number(path, rope, "factor"),
        low_factor=number(path, rope, "low_freq_factor"),
        high_factor=number(path, rope, "high_freq_factor"),
        original=whole(path, rope, "original_max_position_embeddings"),
    )


def whole(path: Path, config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number of a config; raises ValueError if it is missing without a default, or is none."""
    found = config.get(key)
    if found is None and default is not None:
        return default
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"{path}: {key} is {found!r}; expected a whole number")
    return found


def number(path: Path, config: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """A number of a config; raises ValueError if it is missing without a default, or is none."""
    found = config.get(key, default)
    if not isinstance(found, int | float) or isinstance(found, bool) or not found > 0:
        raise ValueError(f"{path}: {key} is {found!r}; expected a number above 0")
    return float(found)

"""Shapes of the models that are run: by name, or from a Hugging Face config.json. Imports no torch, reads no weights.

`calibrate.models.architecture` has the sizes that decide what a step costs, of more kinds of models; a shape adds
what the decoder computes besides: biases, rotary positions, the epsilon of its norms. The named shapes are those that
their makers publish in config.json; `tiny` is ours, small enough for a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from calibrate.models import hf_config
from calibrate.models.architecture import BYTES, Architecture
from calibrate.models.registry import MODELS, unknown_model

DType = Literal["float32", "bfloat16", "float16"]
DTYPES: tuple[DType, ...] = get_args(DType)
"""Dtypes of weights and cache that the decoder computes in."""


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's scaling of the rotary wavelengths (config.json, rope_type `llama3`).

    Wavelengths above original / low_factor positions are stretched by `factor`, those below original / high_factor
    are kept, and between the two the stretch is interpolated.
    """

    factor: float
    low_factor: float
    high_factor: float
    original: int


@dataclass(frozen=True)
class ModelShape(Architecture):
    """A Llama-style decoder: RMSNorm, rotary positions, grouped queries, SwiGLU; no weights.

    The sizes of `Architecture`, without experts, windows or latent attention, and

    dtype          of weights and cache, as published
    qkv_bias       queries, keys and values have a bias (Qwen2)
    rope_base      base of the rotary wavelengths, and `rope_scaling` their scaling if any
    epsilon        of the RMS norms
    max_model_len  positions that the model supports

    Raises ValueError for sizes that contradict each other and for what the decoder does not compute.
    """

    dtype: DType = "bfloat16"
    qkv_bias: bool = False
    rope_base: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    epsilon: float = 1e-5
    max_model_len: int = 131_072

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
            for key in ("intermediate", "max_model_len"):
                if getattr(self, key) < 1:
                    raise ValueError(f"{key} is {getattr(self, key)}; expected at least 1")
            if self.head_size % 2:
                raise ValueError(f"head_size is {self.head_size}; expected an even number")
            if self.experts or self.window or self.kv_rank:
                raise ValueError("experts, window and kv_rank are not computed; expected 0 for each")
        except ValueError as error:
            raise ValueError(f"model {self.name}: {error}") from None

    @property
    def query_width(self) -> int:
        """Columns of the queries of one token."""
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Columns of the keys of one token, and of its values."""
        return self.kv_heads * self.head_size

    @property
    def layer_vectors(self) -> int:
        """Parameters of one layer that are no matrices, which `Architecture` leaves out: norms and biases."""
        return 2 * self.hidden + (self.query_width + 2 * self.kv_width) * self.qkv_bias

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer."""
        return round(self.layers_parameters(0)) // self.layers + self.layer_vectors

    @property
    def parameters(self) -> int:
        """All parameters, norms and biases included; a tied head counts once."""
        return super().parameters + self.layers * self.layer_vectors + self.hidden

    @property
    def streamed_parameters(self) -> int:
        """Parameters that a step reads in full: all but the embedding, of which it reads the rows of its tokens."""
        return round(self.read(1)) + self.layers * self.layer_vectors + self.hidden

    def weight_bytes(self, dtype: DType | None = None) -> int:
        """Bytes of all weights in this dtype; None: the published one."""
        return self.parameters * BYTES[dtype or self.dtype]

    def kv_bytes_per_token(self, dtype: DType | None = None) -> int:
        """Bytes of keys and values of one position over all layers, in this dtype; None: the published one."""
        return round(self.kv_values()) * BYTES[dtype or self.dtype]

    def written(self) -> dict[str, Any]:
        """The shape as the `about.json` of a measurement has it; `from_written` reads it back."""
        given = asdict(self)
        return {OLD_KEYS.get(key, key): given[key] for key in WRITTEN}


WRITTEN = (
    "name",
    "layers",
    "hidden",
    "intermediate",
    "heads",
    "kv_heads",
    "head_size",
    "vocabulary",
    "dtype",
    "tied",
    "qkv_bias",
    "rope_base",
    "rope_scaling",
    "epsilon",
    "max_model_len",
)
OLD_KEYS = {"max_model_len": "longest"}
"""Fields of a shape that about.json has under another key."""


def from_written(written: Mapping[str, Any]) -> ModelShape:
    """The shape of `ModelShape.written`."""
    given = {key: written[OLD_KEYS.get(key, key)] for key in WRITTEN}
    scaling = given["rope_scaling"]
    return ModelShape(**{**given, "rope_scaling": None if scaling is None else RopeScaling(**scaling)})


LLAMA_3_1 = RopeScaling(factor=8.0, low_factor=1.0, high_factor=4.0, original=8192)


def published(name: str, **besides: Any) -> ModelShape:
    """A model of `calibrate.models.registry`, with the other keys of its config.json."""
    return ModelShape(**asdict(MODELS[name]), **besides)


SHAPES: Mapping[str, ModelShape] = {
    shape.name: shape
    for shape in (
        ModelShape("tiny", 4, 512, 1536, 8, 2, 64, 8192, dtype="float32", max_model_len=8192),
        published("llama-3.2-1b", rope_base=500_000.0, rope_scaling=replace(LLAMA_3_1, factor=32.0)),
        published("llama-3.1-8b", rope_base=500_000.0, rope_scaling=LLAMA_3_1),
        published("qwen2.5-7b", qkv_bias=True, rope_base=1_000_000.0, epsilon=1e-6),
        published("llama-2-7b", max_model_len=4096),
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

    Raises ValueError, with the nearest known name, for a model that is neither.
    """
    if model in SHAPES:
        return SHAPES[model]
    path = hf_config.find(model)
    if path is None:
        raise unknown_model(model, SHAPES)
    try:
        return from_config(str(path), hf_config.read(path))
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from None


def from_config(name: str, config: Any) -> ModelShape:
    """The shape in the mapping of a Hugging Face config.json of a Llama or Qwen2 model.

    Raises ValueError for a mapping that is not one, and for a value that this decoder does not compute.
    """
    config = hf_config.checked(config)
    kind = config.get("model_type")
    if kind not in ("llama", "qwen2"):
        raise ValueError(f"model_type is {kind!r}; expected llama or qwen2")
    for key, allowed in REFUSED.items():
        if key in config and config[key] not in allowed:
            raise ValueError(f"{key} is {config[key]!r}; expected {allowed[0]!r}")
    dtype = hf_config.published_dtype(config) or "float32"
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; expected {', '.join(DTYPES)}")
    sizes = replace(hf_config.from_config(config), name=name, dtype=dtype, window=0, windowed_layers=0)
    rope = rotary(config)
    return ModelShape(
        **asdict(sizes),
        qkv_bias=kind == "qwen2",
        rope_base=number(rope, "rope_theta", 10_000.0),
        rope_scaling=scaling(rope),
        epsilon=number(config, "rms_norm_eps", 1e-6),
        max_model_len=hf_config.whole(config, "max_position_embeddings"),
    )


def rotary(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config states of rotary positions, in its newer place or its older ones."""
    rope = {"rope_theta": config.get("rope_theta", 10_000.0)}
    for key in ("rope_scaling", "rope_parameters"):
        given = config.get(key) or {}
        if not isinstance(given, dict):
            raise ValueError(f"{key} is {given!r}; expected an object")
        rope |= given
    return rope


def scaling(rope: Mapping[str, Any]) -> RopeScaling | None:
    """The scaling of the rotary wavelengths; None: there is none."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise ValueError(f"rope_type is {kind!r}; expected llama3, or no scaling")
    return RopeScaling(
        factor=number(rope, "factor"),
        low_factor=number(rope, "low_freq_factor"),
        high_factor=number(rope, "high_freq_factor"),
        original=hf_config.whole(rope, "original_max_position_embeddings"),
    )


def number(config: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """A number of a config; raises ValueError if it is missing without a default, or not above 0."""
    found = config.get(key, default)
    if not isinstance(found, int | float) or isinstance(found, bool) or not found > 0:
        raise ValueError(f"{key} is {found!r}; expected a number above 0")
    return float(found)

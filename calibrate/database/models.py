"""Which model of the database is meant: by our name, by its own, or by a folder with a config.json.

Offline: a name that the package does not ship is an error, never a download.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrate.models import hf_config
from calibrate.models.architecture import Architecture
from calibrate.models.registry import MODELS

OURS = {
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-32b": "Qwen/Qwen3-32B",
}
"""The package's names of models that we name too; our other dense ones are described to it by their sizes."""


@dataclass(frozen=True)
class Model:
    """A model that the package reads from `path`, one of its names or a folder; `config` is the content read there.

    architecture  its sizes, None for layers that are not counted here
    """

    name: str
    path: str
    config: Mapping[str, Any]
    architecture: Architecture | None

    @property
    def digest(self) -> str:
        """SHA-256 of the config."""
        return hashlib.sha256(json.dumps(self.config, sort_keys=True, default=str).encode()).hexdigest()


@contextmanager
def found(model: str, shipped: Iterable[str], read: Any) -> Iterator[Model]:
    """The model that is meant; a folder made for it lasts as long as the context.

    `shipped`: the package's names; `read(path)`: its reading of a config. Raises ValueError, with the nearest name,
    for one that is neither known nor a folder.
    """
    names = sorted(shipped)
    with tempfile.TemporaryDirectory() as folder:
        path = where(model, names, Path(folder))
        config = read(path)
        sizes = MODELS.get(model) or architecture(config, model)
        yield Model(Path(model).name if path == model else model, path, config, sizes)


def where(model: str, names: list[str], folder: Path) -> str:
    """The package's name of a model, or a folder that describes it, made in `folder` if need be."""
    if model in names:
        return model
    if model in OURS:
        return OURS[model]
    short = [name for name in names if name.split("/")[-1].lower() == model.lower().split("/")[-1]]
    if len(short) == 1:
        return short[0]
    config = hf_config.find(model)
    if config is not None:
        return str(config.parent)
    if model in MODELS and not (MODELS[model].experts or MODELS[model].window):
        (folder / "config.json").write_text(json.dumps(described(MODELS[model])))
        return str(folder)
    known = [*names, *MODELS]
    near = difflib.get_close_matches(model.lower(), [name.lower() for name in known], n=1, cutoff=0.0)[0]
    nearest = next(name for name in known if name.lower() == near)
    raise ValueError(
        f"model {model}: aiconfigurator-core has no configuration of it, and no such folder; did you mean {nearest}? "
        "(or a folder with its config.json)"
    )


def described(model: Architecture) -> dict[str, Any]:
    """A config.json of a dense model of ours, as far as the package reads it."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": model.layers,
        "hidden_size": model.hidden,
        "intermediate_size": model.intermediate,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_size,
        "vocab_size": model.vocabulary,
        "max_position_embeddings": 131072,
        "torch_dtype": model.dtype,
    }


def architecture(config: Mapping[str, Any], name: str) -> Architecture | None:
    """The sizes in a config, whatever its quantisation; None for layers that `Architecture` does not count."""
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    try:
        return hf_config.from_config({**plain, "_name_or_path": Path(name).name})
    except ValueError:
        return None

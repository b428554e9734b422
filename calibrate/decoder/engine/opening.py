"""Opening an engine, or one line that says why there is none. Imports torch only when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import CannotRun
from calibrate.models.decoder_shape import ModelShape, model_shape

if TYPE_CHECKING:
    from calibrate.decoder.engine.executor import Executor


def open_engine(model: str | ModelShape, options: EngineOptions) -> Executor:
    """An engine for a named model, a config.json, or a shape; close it after use.

    Raises CannotRun, one line, without torch, without a GPU where one is required, for an unknown model, a backend
    that is not installed, a max_model_len above the model's, or too little memory.
    """
    try:
        shape = model_shape(model) if isinstance(model, str) else model
    except ValueError as error:
        raise CannotRun(str(error)) from None
    if options.max_model_len > shape.max_model_len:
        raise CannotRun(
            f"max_model_len is {options.max_model_len}; expected at most {shape.max_model_len}, for {shape.name}"
        )
    try:
        import torch  # noqa: F401 - only whether it is there
    except ImportError:
        raise CannotRun("running a model needs PyTorch: pip install 'slotstep[calibrate]'") from None
    from calibrate.decoder.engine.executor import Executor

    return Executor(shape, options)

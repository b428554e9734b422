"""A named model measured on a device: the engine opened for it, and the description of both in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import CannotRun
from calibrate.hardware.environment import engine_on
from calibrate.hardware.nvml import state_reader
from calibrate.measure.measure import Plan, measure
from calibrate.measure.run_log import LINES, RunLog, read_lines
from calibrate.models.decoder_shape import model_shape


def measure_model(
    model: str,
    options: EngineOptions,
    folder: Path,
    plan: Plan,
    say: Callable[[str], None] = lambda _: None,
) -> RunLog:
    """Measure a model into a folder, or continue there; the ceilings of the device first, while its memory is free.

    Raises CannotRun, one line, if the engine cannot run, and ValueError as `measure`.
    """
    try:
        shape = model_shape(model)
    except ValueError as error:
        raise CannotRun(str(error)) from None
    known = any(line["kind"] == "ceilings" for line in read_lines(folder))
    bounds = {} if known else ceilings_of(options, shape.dtype)
    with open_engine(model, options) as engine:
        engine.fill_cache(options.seed)
        about = engine_on(engine) | {"pages": engine.pages, "threads": options.threads}
        say(f"{shape.name} on {about['device']}, {engine.dtype}, attention {engine.attention}, {engine.pages} pages")
        clock = "cpu" if engine.device.type == "cpu" and options.threads == 1 else "device"
        read_state = state_reader(engine.device.type)
        given = (lambda: bounds) if bounds else None
        return measure(
            engine, shape.vocabulary, about, folder, plan, ceilings=given, read_state=read_state, clock=clock, say=say
        )


def ceilings_of(options: EngineOptions, published: str) -> dict[str, float]:
    """The measured peaks of the device of some options. Raises CannotRun without torch or the device."""
    try:
        from calibrate.decoder.engine.device import device_of
        from calibrate.hardware.peaks import ceilings
    except ImportError:
        raise CannotRun("running a model needs PyTorch: pip install 'slotstep[calibrate]'") from None
    device = device_of(options.device)
    dtype = options.dtype or (published if device.type == "cuda" else "float32")
    return ceilings(device, dtype, options.threads)  # type: ignore[arg-type]  # a shape's dtype is one


def on_gpu(device: str) -> bool:
    """Whether a device of this name is a GPU; False without torch, so that opening the engine reports it."""
    try:
        import torch
    except ImportError:
        return False
    return device == "cuda" or (device == "auto" and torch.cuda.is_available())


def folder_of(path: Path) -> Path:
    """A folder that holds a measurement; raises ValueError, one line, for one that does not."""
    if not (path / LINES).is_file():
        raise ValueError(f"{path}: no {LINES} in it; expected a folder that `slotstep calibrate measure --out` wrote")
    return path

"""What each stage of the GPU check does, in its own process; every result is in the JSON as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calibrate.fit.fit_run import Fitted, fit
from calibrate.gpu.check import Check
from calibrate.gpu.config import anchor
from calibrate.gpu.validation import validate
from calibrate.hardware.devices import DEVICES
from calibrate.measure.measure import Plan, measure
from calibrate.measure.run_log import read_about, read_lines


def machine(check: Check) -> None:
    """Device, driver, versions, clocks and power while idle."""
    from calibrate.decoder.engine.device import device_of
    from calibrate.hardware.environment import machine as machine_of
    from calibrate.hardware.nvml import state_reader

    device = device_of(check.scale.device)
    check.put(
        **machine_of(device), model=check.shape.name, dtype=check.dtype, idle=state_reader(check.scale.device)()
    )


def correctness(check: Check) -> None:
    """Attention and operators at the shapes that are timed; then whole engines."""
    from calibrate.decoder.engine.device import device_of
    from calibrate.gpu.correctness import check_engine
    from calibrate.gpu.kernel_checks import run_checks

    checks: list[dict[str, Any]] = []

    def add(found: dict[str, Any]) -> None:
        checks.append(found)
        check.put(checks=checks)

    run_checks(device_of(check.scale.device), check.scale.backends, check.scale.dtypes, add)
    for found in check_engine(check.scale.device):
        add(found)


def peaks(check: Check) -> None:
    """Bytes and operations a second, and the bandwidth of the data sheet of a device whose name is known."""
    from calibrate.decoder.engine.device import device_of
    from calibrate.hardware.nvml import state_reader
    from calibrate.hardware.peaks import ceilings

    found = ceilings(
        device_of(check.scale.device), check.dtype, read_state=state_reader(check.scale.device),
        state=lambda state: check.put(state=state),
    )  # fmt: skip
    check.put(**found)
    words = check.results.read().get("machine", {}).get("device", "").lower().split()
    sheet = next((each for name, each in DEVICES.items() if name.partition("-")[0] in words), None)
    if sheet is not None:
        check.put(data_sheet_bytes_per_s=sheet.bandwidth, data_sheet=sheet.source)


def kernels(check: Check) -> None:
    """Each backend's decode attention, and matrix products; on a GPU, other settings of the Triton kernel."""
    from calibrate.decoder.engine.device import device_of
    from calibrate.gpu.kernel_bench import kernel_bench, sweep
    from calibrate.gpu.product_bench import product_bench

    scale, device = check.scale, device_of(check.scale.device)
    cases: list[dict[str, Any]] = []
    everywhere = (scale.batches, scale.contexts, scale.page_sizes)
    once = ((scale.anchor[0],), (scale.anchor[1],), scale.page_sizes[:1])
    fast = [each for each in scale.backends if each != "torch"] if device.type == "cuda" else []
    for backends, sizes in ((fast, everywhere), (["torch"], once)):
        for row in kernel_bench(check.shape, device, check.dtype, backends, *sizes):
            cases.append(row)
            check.put(cases=cases)
    timed: list[dict[str, Any]] = []
    for row in product_bench(check.shape, device, check.dtype, scale.batches):
        timed.append(row)
        check.put(products=timed)
    if device.type == "cuda":
        swept: list[dict[str, Any]] = []
        for row in sweep(check.shape, device, check.dtype, *scale.anchor):
            swept.append(row)
            check.put(sweep=swept)


def steps(check: Check) -> None:
    """The grid of steps and the anchor, into a folder of their own."""
    from calibrate.hardware.environment import engine_on
    from calibrate.hardware.nvml import state_reader

    scale = check.scale
    peaks_found = check.results.read().get("peaks", {})
    bounds = {key: value for key, value in peaks_found.items() if key.endswith("_per_s")}
    with check.engine() as engine:
        engine.fill_cache(0)
        about = engine_on(engine)
        check.put(attention=about["attention"], graphs=about["graphs"])
        plan = Plan(
            scale.slots, scale.token_budget, scale.rounds, ragged=scale.held_out, seconds=scale.steps, extra=8,
            batches=engine.capture_sizes,
        )  # fmt: skip
        run_log = measure(
            engine, check.shape.vocabulary, about, check.measured, plan, say=print, beside=[anchor(scale)],
            ceilings=(lambda: bounds) if bounds else None, read_state=state_reader(scale.device),
            clock="cpu" if scale.device == "cpu" else "device",
        )  # fmt: skip
    check.put(visits=len(run_log.of("visit")), skipped=run_log.of("skip"), end=run_log.of("end")[-1])


def fitting(check: Check) -> None:
    """A profile of what was measured, without the host; and the figures of the anchor."""
    about, lines = read_about(check.measured), read_lines(check.measured)
    found = fit(lines, about)
    check.write_profile(found, about, 0.0)
    check.put(residuals=found.residuals, drift=found.drift.verdict, clock=found.clock)
    device = fit(lines, about, clock="cpu" if check.scale.device == "cpu" else "device").points.set_index("name")
    name = anchor(check.scale).name
    at, wall = device.loc[name], fit(lines, about, clock="wall").points.set_index("name").loc[name]
    figures = {"name": name, "device_ns": at["duration_ns"], "wall_ns": wall["duration_ns"]}
    if at["over_floor"] == at["over_floor"]:
        figures["over_floor"] = at["over_floor"]
        bounds = found.ceilings or {}
        if "data_sheet_bytes_per_s" in bounds:
            share = bounds["read_bytes_per_s"] / bounds["data_sheet_bytes_per_s"]
            figures |= {"over_floor_of_data_sheet": at["over_floor"] / share, "measured_share_of_data_sheet": share}
    check.put(anchor=figures)
    figure(found, check.out / "fit.png")


def figure(found: Fitted, path: Path) -> None:
    """Predicted over measured, each point by its kind."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    made, axes = pyplot.subplots(figsize=(7, 4))
    for kind, points in found.points.groupby("kind"):
        axes.plot(points["duration_ns"] / 1e6, 100 * points["error"], "o", label=str(kind), alpha=0.7)
    axes.axhline(0, color="0.5", lw=1)
    axes.set(xscale="log", xlabel="measured step, ms", ylabel="predicted over measured - 1, %")
    axes.legend(frameon=False)
    made.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(made)


WORK: Mapping[str, Callable[[Check], None]] = {
    "machine": machine,
    "correctness": correctness,
    "peaks": peaks,
    "kernels": kernels,
    "steps": steps,
    "fit": fitting,
    "validation": validate,
}

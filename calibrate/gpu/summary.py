"""The results of the GPU check beside their aims, as Markdown. Reads results by name; uses no device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Found = Mapping[str, Any]
Row = tuple[str, str, str]
MARKS = (("cached", "in cache"), ("with_launches", "launches included"))


def markdown(found: Found, anchor: tuple[int, int], seconds: float) -> str:
    """The summary of the stages that have a result."""
    batch, context = anchor
    lines = ["# What was found", ""]
    machine = found.get("machine")
    if machine:
        lines += [f"{machine['model']}, {machine['dtype']}, on {machine['device']}; driver {machine['driver']}, "
                  + ", ".join(f"{name} {version}" for name, version in machine["software"].items()), ""]  # fmt: skip
    rows = [
        *correctness(found),
        *peaks(found),
        *kernels(found, batch, context),
        *steps(found, batch, context),
        *loads(found),
    ]
    if rows:
        lines += ["| what | found | aim |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    stages: Mapping[str, Any] = found.get("stages", {})
    for name, stage in stages.items():
        for way, why in stage["failed"].items():
            lines.append(f"- FAILED {name}{f' ({way})' if way else ''}: {' '.join(why.split()[-40:])}")
        if stage["failed"] and stage["way"] is not None:
            lines.append(f"- {name}: fell back to {stage['way']}")
        if stage["way"] is None and not stage["failed"]:
            lines.append(f"- {name}: not run, as an earlier stage has no result")
    lines.append(
        f"{seconds:.0f} s so far: " + ", ".join(f"{name} {each['seconds']} s" for name, each in stages.items())
    )
    return "\n".join(lines) + "\n"


def correctness(found: Found) -> list[Row]:
    """How many checks passed, and those that did not."""
    all_of_them = found.get("correctness", {}).get("checks", [])
    if not all_of_them:
        return []
    ran = [check for check in all_of_them if check["passed"] is not None]
    rows = [("correctness checks passed", f"{sum(check['passed'] for check in ran)} of {len(ran)}", "all")]
    rows += [
        (check["check"], f"FAILED {check.get('why', '')}".strip(), "passes") for check in ran if not check["passed"]
    ]
    return rows + [
        (check["check"], f"not run: {check['why']}", "") for check in all_of_them if check["passed"] is None
    ]


def peaks(found: Found) -> list[Row]:
    """The measured bandwidth, and its share of the data sheet's."""
    bounds = found.get("peaks", {})
    if "read_bytes_per_s" not in bounds:
        return []
    rows = [("read bandwidth measured", f"{bounds['read_bytes_per_s'] / 1e9:,.1f} GB/s", "")]
    if "data_sheet_bytes_per_s" in bounds:
        share = bounds["read_bytes_per_s"] / bounds["data_sheet_bytes_per_s"]
        rows.append(
            (f"the same over the data sheet's {bounds['data_sheet_bytes_per_s'] / 1e12:g} TB/s", f"{share:.0%}", "")
        )
    return [*rows, ("matrix products", f"{bounds['matrix_flop_per_s'] / 1e12:,.2f} TFLOP/s", "")]


def kernels(found: Found, batch: int, context: int) -> list[Row]:
    """Bandwidth of each backend and product at the batch and context nearest to these, over the measured read one."""
    cases = [case for case in found.get("kernels", {}).get("cases", []) if "bytes_per_s" in case]
    read = found.get("peaks", {}).get("read_bytes_per_s")
    if not cases or not read:
        return []
    nearest = min(cases, key=lambda case: (abs(case["batch"] - batch), abs(case["context"] - context)))
    rows = []
    for case in cases:
        if (case["batch"], case["context"]) == (nearest["batch"], nearest["context"]):
            marks = [
                said for key, said in (("cached", "in cache"), ("with_launches", "launches included")) if case[key]
            ]
            what = f"{case['backend']} decode kernel, batch {case['batch']}, context {case['context']}, pages of "
            value = ", ".join([f"{case['bytes_per_s'] / read:.0%} of it", *marks])
            rows.append((f"{what}{case['page_size']}", value, "85% at batch 64, context 2k"))
    products = [each for each in found["kernels"].get("products", []) if each.get("seconds")]
    at = min((abs(each["batch"] - batch) for each in products), default=0)
    for each in products:
        if abs(each["batch"] - batch) == at:
            what = f"{each['product']} product, batch {each['batch']}, {each['outputs']} by {each['inputs']}"
            rows.append((what, f"{each['bytes_per_s'] / read:.0%} of it", ""))
    swept = [each for each in found["kernels"].get("sweep", []) if "bytes_per_s" in each]
    if swept:
        best = max(swept, key=lambda each: float(each["bytes_per_s"]))
        settings = ", ".join(f"{key} {best[key]}" for key in ("tile", "warps", "stages", "splits"))
        rows.append(
            (f"the fastest of {len(swept)} settings: {settings}", f"{best['bytes_per_s'] / read:.0%} of it", "")
        )
    return rows


def steps(found: Found, batch: int, context: int) -> list[Row]:
    """The step of the anchor over the roofline bound, and the errors of the fit."""
    fit = found.get("fit", {})
    if "anchor" not in fit:
        return []
    at, errors = fit["anchor"], fit["residuals"]
    both = f"{at['device_ns'] / 1e6:.2f} ms on the device, {at['wall_ns'] / 1e6:.2f} ms by the wall"
    rows = [(f"decode step, batch {batch}, context {context}", both, "")]
    if "over_floor" in at:
        rows.append(
            ("the same over the floor, on the device", f"{at['over_floor']:.2f}", "1.25 at batch 64, context 2k")
        )
    if "over_floor_of_data_sheet" in at:
        rows.append(("and over the floor by the data sheet", f"{at['over_floor_of_data_sheet']:.2f}", ""))
    rows.append(("drift", fit["drift"], "steady"))
    if "held_out_mean" in errors:
        mean, most = errors["held_out_mean"], errors["held_out_max"]
        told = f"{mean:.1%} on average, {most:.1%} at most, of {errors['held_out_n']}"
        rows.append(("fit, held-out steps", told, "2% on average"))
    return rows


def loads(found: Found) -> list[Row]:
    """The verdict at each load, and the figures that it is about."""
    rows = []
    for told in found.get("validation", {}).get("loads", []):
        where, forced, allowed = told["load"], told["teacher_forced"], told["allowed"]
        rows.append((f"{where}: {told['requests']:,} requests, {told['steps']:,} steps", told["verdict"], "within"))
        groups = forced["groups"].items()
        worst = max(groups, key=lambda item: abs(item[1]), default=("no group", 0.0))
        rows.append(
            ("- forced", f"{forced['total']:+.1%} in all, {worst[0]} {worst[1]:+.1%}", f"{allowed['group']:.1%}")
        )
        for key, most in allowed.items():
            if key in told["free_running"]:
                value = f"{told['free_running'][key]:+.1%} (replays differ by {told['noise'].get(key, 0.0):.1%})"
                rows.append((f"- {key.replace('_', ' ')}", value, f"{most:.1%}"))
        at = told["host_at_batch"]
        if at:
            rows.append(
                (f"- host, a step of {at['rows']} decodes", f"{1e3 * at['all']:.3f} ms", "0.3 ms at batch 64")
            )
    return rows

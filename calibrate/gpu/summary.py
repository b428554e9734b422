"""The results of the GPU check beside their aims, as Markdown. Reads results by name; uses no device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Found = Mapping[str, Any]


def markdown(found: Found, anchor: tuple[int, int], broken: list[str], seconds: float) -> str:
    """The summary of the stages that have a result."""
    batch, context = anchor
    lines = ["# What was found", ""]
    machine = found.get("machine")
    if machine:
        lines += [f"{machine['model']}, {machine['dtype']}, on {machine['device']}; driver {machine['driver']}, "
                  + ", ".join(f"{name} {version}" for name, version in machine["software"].items()), ""]  # fmt: skip
    rows = [*correctness(found), *kernels(found, batch, context), *steps(found, batch, context), *layers(found)]
    if rows:
        lines += ["| what | found | aim |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    lines += [f"- broke: {line}" for line in broken]
    lines.append(f"{seconds:.0f} s so far: " + ", ".join(f"{k} {v} s" for k, v in found.get("seconds", {}).items()))
    return "\n".join(lines) + "\n"


def correctness(found: Found) -> list[tuple[str, str, str]]:
    """How many checks passed, and those that did not."""
    all_of_them = found.get("correctness") or []
    if not all_of_them:
        return []
    ran = [check for check in all_of_them if check["passed"] is not None]
    passed = sum(check["passed"] for check in ran)
    rows = [("correctness checks passed", f"{passed} of {len(ran)}", "all")]
    rows += [
        (check["check"], f"FAILED {check.get('why', '')}".strip(), "passes") for check in ran if not check["passed"]
    ]
    return rows + [
        (check["check"], f"not run: {check['why']}", "") for check in all_of_them if check["passed"] is None
    ]


def kernels(found: Found, batch: int, context: int) -> list[tuple[str, str, str]]:
    """Bandwidth of each backend at the anchor, or at the case nearest to it, over the measured read bandwidth."""
    cases = [case for case in found.get("kernels") or [] if "bytes_per_s" in case]
    bounds = found.get("ceilings")
    if not cases or not bounds:
        return []
    nearest = min(cases, key=lambda case: (abs(case["batch"] - batch), abs(case["context"] - context)))
    rows = [("read bandwidth measured", f"{bounds['read_bytes_per_s'] / 1e9:,.1f} GB/s", "")]
    for case in cases:
        if (case["batch"], case["context"]) == (nearest["batch"], nearest["context"]):
            share = case["bytes_per_s"] / bounds["read_bytes_per_s"]
            what = f"{case['backend']} decode kernel, batch {case['batch']}, context {case['context']}, "
            rows.append((f"{what}pages of {case['page_size']}", f"{share:.0%} of it", "85% at batch 64, context 2k"))
    return rows


def steps(found: Found, batch: int, context: int) -> list[tuple[str, str, str]]:
    """The step of the anchor over the roofline bound, and the errors of the fit."""
    fit = found.get("fit")
    if not fit:
        return []
    at, errors = fit["anchor"], fit["residuals"]
    rows = [
        (f"decode step, batch {batch}, context {context}", f"{at['device_ns'] / 1e6:.2f} ms", ""),
        ("the same over the floor", f"{at['over_floor']:.2f}", "1.25 at batch 64, context 2k"),
        ("drift", fit["drift"], "steady"),
    ]
    if "held_out_mean" in errors:
        aim = "2% on average"
        rows.append(
            (
                "fit, held-out steps",
                f"{errors['held_out_mean']:.1%} on average, {errors['held_out_max']:.1%} at most",
                aim,
            )
        )
    return rows


def layers(found: Found) -> list[tuple[str, str, str]]:
    """The three layers of the validation."""
    told = found.get("validation")
    if not told:
        return []
    forced, noise, aim = told["teacher_forced"], told["noise"], "3%, or twice the noise"
    rows = [
        ("replay", f"{told['requests']:,} requests in {told['steps']:,} steps", ""),
        ("teacher-forced", f"{forced['median_abs']:.1%} median, {forced['total']:+.1%} in all", ""),
    ]
    for key in ("busy", "ttft_mean", "tpot_mean", "e2e_mean"):
        if key in told["free_running"]:
            value = f"{told['free_running'][key]:+.1%} (a second replay {noise.get(key, float('nan')):+.1%})"
            rows.append((f"free-running, {key.replace('_', ' ')}", value, aim))
    host = told["host"]["scheduling_and_bookkeeping_s"]["p50"]
    if host is not None:
        rows.append(("scheduling and bookkeeping, a step", f"{1e3 * host:.3f} ms", "0.3 ms at batch 64"))
    return [*rows, ("verdict", told["verdict"], "within")]

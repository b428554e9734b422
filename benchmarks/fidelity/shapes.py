"""Costs from shapes alone, at the stated efficiencies, beside the shipped profiles of measured tables.

    python -m benchmarks.fidelity.shapes

Steps of Llama-3.1-8B in bfloat16, without host time, which the profiles lack. Errors are of the shapes; shares of the
data sheet are those of the profiles.
"""

from __future__ import annotations

from itertools import product

from calibrate.hardware.devices import DEVICES
from calibrate.models.registry import architecture
from calibrate.profiles.analytic import from_shapes
from calibrate.profiles.host_time import CURRENT
from calibrate.profiles.profile import named
from sim.cost.shape import Shape

MODEL = "llama-3.1-8b"
PROFILES = {
    "a100-llama-3.1-8b": "a100-sxm-80gb",
    "h100-llama-3.1-8b": "h100-sxm",
    "h200-llama-3.1-8b": "h200-sxm",
    "rtx4090-llama-3.1-8b": "rtx-4090",
    "rtxpro6000-llama-3.1-8b": "rtx-pro-6000",
}
DECODES = tuple(product((8, 32, 128, 256), (512, 1024, 4096)))
PROMPTS = (512, 1024, 2048)


def steps() -> dict[str, list[Shape]]:
    """Decode steps of 8 to 256 sequences at contexts of 512 to 4,096, and prompts of 512 to 2,048 tokens alone."""
    made: dict[str, list[Shape]] = {"decode": [], "prefill": []}
    for decodes, context in DECODES:
        batch = Shape()
        batch.decodes, batch.context = decodes, decodes * context
        made["decode"].append(batch)
    for tokens in PROMPTS:
        batch = Shape()
        batch.add_chunk(0, tokens)
        made["prefill"].append(batch)
    return made


def errors(profile: str, device: str) -> dict[str, list[float]]:
    """Relative errors of the shapes' step against the profile's, by kind of step."""
    measured = named(profile).cost()
    made = from_shapes(architecture(MODEL), DEVICES[device], date="now", host=CURRENT.at(0)).cost()
    return {kind: [made.step(each) / measured.step(each) - 1 for each in these] for kind, these in steps().items()}


def attained(profile: str, device: str) -> tuple[float, float]:
    """Shares of the data sheet: bandwidth in a decode step of one sequence, rate in a prompt of 2,048 tokens."""
    cost, model, sheet = named(profile).cost(), architecture(MODEL), DEVICES[device]
    one, prompt = Shape(), Shape()
    one.decodes = 1
    prompt.add_chunk(0, 2048)
    bandwidth = model.read(1) * 2 / (cost.step(one) / 1e9)
    rate = (2 * model.multiplied * 2048 + model.pair_flops * 2048**2 / 2) / (cost.step(prompt) / 1e9)
    return bandwidth / sheet.bandwidth, rate / sheet.rate


def main() -> None:
    """Print a line for each device."""
    print("| profile | decode, mean error | worst | prefill, mean error | bandwidth | rate |")
    print("|---|---:|---:|---:|---:|---:|")
    for profile, device in PROFILES.items():
        found = errors(profile, device)
        decode, prefill = found["decode"], found["prefill"]
        bandwidth, rate = attained(profile, device)
        print(
            f"| `{profile}` | {sum(decode) / len(decode):+.0%} | {max(decode, key=abs):+.0%} "
            f"| {sum(prefill) / len(prefill):+.0%} | {bandwidth:.0%} | {rate:.0%} |"
        )


if __name__ == "__main__":
    main()

"""What the tables do not have: constants of an engine, fitted to open rows (`python -m benchmarks.silicon --fit`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.silicon.rows import Row
from calibrate.database.profile import with_prompt_factor
from calibrate.profiles.profile import Profile

MS = 1e6


@dataclass(frozen=True)
class Constants:
    """Of an engine.

    host     ms of every step
    prompts  factor of the kernels of a step that computes any prompt (`with_prompt_factor`)
    delay    ms of every request, the client's
    least    ms: what depends on the tokens of a step with a prompt takes at least so long, where the host launches
             its kernels one by one, as no captured graph has it
    """

    host: float = 0.0
    prompts: float = 1.0
    delay: float = 0.0
    least: float = 0.0


VLLM = Constants(0.8, 1.2, 6.0)
CONSTANTS: Mapping[str, Constants] = {"vllm": VLLM, "sglang": VLLM, "trtllm": Constants(0.0, 1.1, 4.0)}
"""By engine; SGLang has vLLM's, for no open row of InferenceX's dense models is of it."""
LEASTS: Mapping[tuple[str, str], float] = {
    ("vllm", "b200_sxm"): 75.0,
    ("sglang", "h200_sxm"): 200.0,
    ("sglang", "b200_sxm"): 300.0,
    ("sglang", "b300_sxm"): 300.0,
}
"""`least` by engine and system: of dense models for vLLM, which there captures graphs of decodes alone
(`cudagraph_mode: FULL_DECODE_ONLY`), and of mixtures for SGLang, which captures none with prompts."""


def constants(row: Row) -> Constants:
    """The constants of a row's engine on its system."""
    least = LEASTS.get((row.backend, row.system), 0.0)
    if row.dense != (row.backend == "vllm"):
        least = 0.0
    return replace(CONSTANTS[row.backend], least=least)


def with_constants(made: Profile, of: Constants) -> Profile:
    """The profile of the database with `prompts` and `least`."""
    scaled = with_prompt_factor(made, of.prompts)
    if not of.least:
        return scaled
    given = scaled.content["curve"]["table"]
    dense = {**given["dense"], "ns": [max(each, MS * of.least) for each in given["dense"]["ns"]]}
    curve = {"decode_dense": given["dense"], **given, "dense": dense}
    return Profile(made.name, {**scaled.content, "curve": {"table": curve}})


def written(made: Profile, of: Constants, folder: Path) -> Path:
    """The file in `folder` of the profile with these constants."""
    path = folder / f"{made.sha256[:16]}-{of.prompts:g}-{of.least:g}.yaml"
    if not path.exists():
        path.write_text(with_constants(made, of).text())
    return path

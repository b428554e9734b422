"""The same burst under each engine: steps over time, docs/presets.png.

python examples/presets.py            draw docs/presets.png
python examples/presets.py --table    print what each engine did, as Markdown
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from markdown_table import print_head, print_row

import slotstep
from reports.figures.png import write_png
from reports.figures.step_kinds import step_kinds
from sim.log.step_kinds import KINDS, kinds_by_step
from slotstep.experiments.engines import on_engine
from slotstep.runs.result import Result

HERE = Path(__file__).parent
ENGINES = ("vllm", "sglang", "trtllm")
COLUMNS = ("engine", "steps", "prefill", "mixed", "decode", "mean TTFT", "mean TPOT", "largest gap", "makespan")


def main() -> None:
    """Draw, or print the table."""
    scenario = slotstep.load(HERE / "burst.yaml")
    results = {name: slotstep.run(on_engine(scenario, name)) for name in ENGINES}
    if "--table" in sys.argv[1:]:
        print_table(results)
        return
    drawn = step_kinds({result.summary["preset"]: steps(result) for result in results.values()})
    print(*write_png({"presets": drawn}, HERE.parent / "docs"))


def steps(result: Result) -> pd.DataFrame:
    """The steps of a run with their kinds."""
    return result.steps.assign(kind=[KINDS[place] for place in kinds_by_step(result.log)])


def print_table(results: dict[str, Result]) -> None:
    """What each engine did."""
    print_head(COLUMNS)
    for result in results.values():
        kinds = steps(result).kind.value_counts()
        found = result.summary
        print_row(
            [
                found["preset"],
                f"{found['steps']}",
                *(f"{kinds.get(kind, 0)}" for kind in ("prefill", "mixed", "decode")),
                f"{1000 * found['ttft_s']['mean']:.0f} ms",
                f"{1000 * found['tpot_s']['mean']:.1f} ms",
                f"{1000 * found['max_itl_s']['max']:.0f} ms",
                f"{found['makespan_s']:.2f} s",
            ]
        )


if __name__ == "__main__":
    main()

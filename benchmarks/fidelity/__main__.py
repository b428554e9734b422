"""`python -m benchmarks.fidelity [SUITE ...]`: run suites on the public data, write their sections of the page.

The page is docs/fidelity.md unless `--out` names another. The data are in SLOTSTEP_DATA, or else in ../shared/data.
Sections of suites that are not run are kept.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.__main__ import machine
from benchmarks.fidelity import closed_loop, from_shapes, inference_perf, operators, tenants, vllm_cpu
from benchmarks.fidelity.rows import Row

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "fidelity.md"


def pivoted(rows: Sequence[Row]) -> str:
    """A line per run with the errors of each metric and statistic, measured values in brackets."""
    columns = list(dict.fromkeys((row.metric, row.statistic) for row in rows))
    heads = [f"{metric.removesuffix('_s').upper()} {statistic}" for metric, statistic in columns]
    lines = ["| run | " + " | ".join(heads) + " | fitted |", "|---|" + "---:|" * len(columns) + "---|"]
    for run in dict.fromkeys(row.run for row in rows):
        mine = {(row.metric, row.statistic): row for row in rows if row.run == run}
        cells = [f"{mine[each].error:+.1%} ({mine[each].measured:.3g} s)" if each in mine else "" for each in columns]
        fitted = next(iter(mine.values())).fitted or "nothing"
        lines.append(f"| {run} | " + " | ".join(cells) + f" | {fitted} |")
    return "\n".join(lines) + "\n"


def of_operators(data: Path) -> str:
    """The RTX 4090 and the RTX PRO 6000 from operator tables."""
    return pivoted(operators.rows(data))


def of_closed_loop(data: Path) -> str:
    """TensorRT-LLM in a closed loop, by concurrency."""
    rows = closed_loop.rows(data)
    table = closed_loop.by_concurrency(data, rows)
    mean = sum(abs(row.error) for row in rows) / len(rows)
    lines = [f"Mean size of the error in TPOT over {len(rows)} rows: {mean:.1%}.", ""]
    lines += ["| clients | " + " | ".join(table.columns) + " |", "|---:|" + "---:|" * len(table.columns)]
    for clients, row in table.iterrows():
        cells = [f"{value:.0f}" if name == "rows" else f"{value:+.1%}" for name, value in row.items()]
        lines.append(f"| {clients} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def of_cpu(data: Path) -> str:
    """vLLM on a CPU."""
    work, rows = vllm_cpu.report(data)
    return pivoted(rows) + work


SUITES: Mapping[str, tuple[str, Callable[[Path], str]]] = {
    "from-shapes": (from_shapes.SUITE, lambda data: from_shapes.report(data)[0]),
    "operators": (operators.SUITE, of_operators),
    "closed-loop": (closed_loop.SUITE, of_closed_loop),
    "tenants": (tenants.SUITE, lambda data: tenants.report(data)[0]),
    "inference-perf": (inference_perf.SUITE, lambda data: inference_perf.report(data)[0]),
    "cpu": (vllm_cpu.SUITE, of_cpu),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named suites; without names, all."""
    about = "Predictions against measured runs."
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=about)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which; all if none is named")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page whose sections are written")
    options = parser.parse_args(arguments)
    data = Path(os.environ.get("SLOTSTEP_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        sys.exit(f"no public data at {data}; set SLOTSTEP_DATA to its folder")
    for name in options.suites or SUITES:
        title, report = SUITES[name]
        print(f"running {name}", file=sys.stderr, flush=True)
        began = time.process_time()
        text = report(data)
        spent = time.process_time() - began
        command = f"python -m benchmarks.fidelity {name}"
        when = f"`{command}`, {datetime.date.today()}, {machine()}: {spent:.0f} s of CPU time."
        put(options.out, name, f"## {title}\n\n{when}\n\n{text}")


def put(page: Path, name: str, section: str) -> None:
    """Write one suite's section between its marks, or at the end of a page that does not have it yet."""
    marks = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    whole = f"{marks[0]}\n{section.rstrip()}\n{marks[1]}"
    text = page.read_text() if page.exists() else "# How far predictions are from measured runs\n"
    pattern = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), re.DOTALL)
    text = pattern.sub(lambda _: whole, text) if pattern.search(text) else f"{text.rstrip()}\n\n{whole}\n"
    page.write_text(text)


if __name__ == "__main__":
    main()

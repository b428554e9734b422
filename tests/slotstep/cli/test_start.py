"""The start of a command: heavy packages are imported where they are needed."""

import subprocess
import sys

from repository import ROOT


def test_a_summary_of_a_synthetic_workload_needs_no_pandas():
    program = "import sys; sys.modules['pandas'] = None; from slotstep.cli.app import main; main()"
    command = [sys.executable, "-c", program, "run", "examples/jobs-continuous.yaml"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")

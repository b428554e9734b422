"""Third-party policies: from a file by `module:Class`, or by an installed package's entry point."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from repository import ROOT
from sim_stories import engine, job, run, times

from policies import registry
from sim import registry as seams

EXAMPLES = ROOT / "examples"


def test_the_worked_example_orders_by_all_the_work(here, monkeypatch):
    """Work at 10 an output token: a 1 + 30, b 25 + 10, c 5 + 10; at 1 a token: a 4, b 26, c 6."""
    monkeypatch.chdir(EXAMPLES)

    def ending_order(options):
        order = registry.build("least_work:LeastWork", options, seed=0)
        ends = times(
            run([job("a", 3), job("b", 1, prompt=25), job("c", 1, prompt=5)], engine(slots=1, order=order)),
            "finished",
        )
        return sorted(ends, key=ends.get)

    assert ending_order({}) == ["c", "a", "b"]
    assert ending_order({"weight": 1}) == ["a", "c", "b"]


def test_the_command_line_takes_it_from_the_current_directory():
    command = [
        sys.executable,
        "-m",
        "slotstep",
        "run",
        "eight-static.yaml",
        "--policy",
        "least_work:LeastWork",
        "--json",
    ]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"policy": "least_work:LeastWork"' in done.stdout


def test_the_example_is_short():
    lines = [line for line in (EXAMPLES / "least_work.py").read_text().splitlines() if line.strip()]
    assert len(lines) < 30


def test_the_current_directory_comes_last(here):
    (here / "json.py").write_text("raise SystemExit('ours was hidden')\n")
    with pytest.raises(ValueError, match=r"'json:Mine' cannot be loaded: AttributeError"):
        registry.build("json:Mine", {}, 0)
    assert sys.path[-1] == str(here)


def test_seed_and_options_reach_the_constructor(here):
    (here / "mine.py").write_text(
        "from policies.fcfs import FirstComeFirstServed\n"
        "class Mine(FirstComeFirstServed):\n"
        "    '''Mine, all mine.\n\n    More.'''\n"
        "    def __init__(self, seed, patience=3):\n"
        "        super().__init__()\n"
        "        self.given = (seed, patience)\n"
    )
    assert registry.build("mine:Mine", {"patience": 5}, seed=7).given == (7, 5)
    assert registry.resolve("mine:Mine", {}) == {"patience": 3}
    assert registry.lookup("mine:Mine").about == "Mine, all mine."
    with pytest.raises(ValueError, match=r"mine:Mine.patienc: unknown option; did you mean patience\?"):
        registry.build("mine:Mine", {"patienc": 5}, seed=7)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("class Mine: pass\n", "expected a class of sim.policy.base.Order"),
        ("from sim.policy.base import Order as Mine\n", "expected a class of sim.policy.base.Order, complete"),
        ("Mine = 3\n", "'mine:Mine' is 3; expected a class"),
        ("def Mine(: pass\n", "cannot be loaded: SyntaxError"),
        (
            "from policies.fcfs import FirstComeFirstServed as F\n"
            "class Mine(F):\n    def __init__(self, needed):\n        super().__init__()\n",
            "has no default for its option 'needed'",
        ),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(here, text, complaint):
    (here / "mine.py").write_text(text)
    with pytest.raises(ValueError, match="'mine:Mine'") as error:
        registry.build("mine:Mine", {}, 0)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_an_installed_package_offers_one_by_name(monkeypatch):
    point = EntryPoint("theirs", "policies.fcfs:FirstComeFirstServed", registry.POLICIES.group)
    monkeypatch.setattr(seams, "entry_points", lambda group: [point])
    seams.installed.cache_clear()
    try:
        assert type(registry.build("theirs", {}, 0)).__name__ == "FirstComeFirstServed"
        with pytest.raises(ValueError, match=r"'thairs' is unknown; did you mean theirs\?"):
            registry.build("thairs", {}, 0)
    finally:
        seams.installed.cache_clear()

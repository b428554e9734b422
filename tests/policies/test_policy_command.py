"""`slotstep policies` lists the whole registry, for people and for programs."""

import inspect
import json
import re

import pytest
import yaml
from repository import ROOT

import slotstep
from policies import victims
from policies.admissions import ADMISSIONS
from policies.predictors.registry import PREDICTORS
from policies.registry import POLICIES, build, names
from sim.policy.base import Order
from slotstep.cli.reports import policies
from slotstep.cli.reports.catalogue import choices
from slotstep.scenario.units import nanoseconds


@pytest.mark.parametrize("columns", ["60", "140"])
def test_the_table_names_every_policy_and_option(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    policies.policies()
    shown = capsys.readouterr().out
    for name, entry in POLICIES.items():
        assert name in shown
        assert all(f"{option}: " in shown for option in entry.options)
    assert "max_wait: 30s" in shown


def test_the_json_has_a_line_the_options_and_the_source_of_each(capsys):
    policies.policies(as_json=True)
    listed = json.loads(capsys.readouterr().out)["policies"]
    assert [entry["name"] for entry in listed] == names()
    by_name = {entry["name"]: entry for entry in listed}
    assert by_name["vtc"]["source"] == "Sheng et al., OSDI 2024"
    assert by_name["fcfs"] == {"name": "fcfs", "about": "First come, first served.", "options": {}, "source": ""}
    assert by_name["edf"]["options"] == {"within": "10s", "tenants": {}}


def test_the_defaults_listed_build_the_policy():
    for entry in choices()["policies"]:
        kinds = {option: known.kind for option, known in POLICIES[entry["name"]].options.items()}
        options = {
            option: nanoseconds(default) if kinds[option] == "duration" else default
            for option, default in entry["options"].items()
        }
        assert len(build(entry["name"], options, seed=0)) == 0


def test_the_other_choices_are_all_listed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    policies.policies()
    shown = capsys.readouterr().out
    policies.policies(as_json=True)
    listed = json.loads(capsys.readouterr().out)
    found = {axis: [entry["name"] for entry in listed[axis]] for axis in ("admission", "victim", "predict")}
    assert found["admission"] == list(ADMISSIONS)
    assert found["victim"] == list(victims.VICTIMS)
    assert found["predict"] == list(PREDICTORS)
    assert all(name in shown for names in found.values() for name in names)
    by_name = {entry["name"]: entry for entry in listed["admission"]}
    assert by_name["quantile"]["options"] == {"epsilon": 0.05, "window": 1000, "every": 8, "outputs": None}
    assert by_name["optimistic"]["options"] == {"reserve_full_prompt": True, "watermark": 0.0}
    correlated = next(entry for entry in listed["predict"] if entry["name"] == "correlated")
    assert correlated["options"] == {"tau": None, "median": None, "sigma": None}


PAGE = (ROOT / "docs" / "policies.md").read_text()


def run_in(folder, policy):
    """Run three jobs under a policy, in a folder with the modules of the page."""
    for name, module in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(module)
    jobs = yaml.safe_load((ROOT / "examples" / "jobs-continuous.yaml").read_text())
    scenario = folder / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(jobs | policy))
    return slotstep.run(slotstep.load(scenario))


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_the_examples_of_the_page_run(example, here):
    result = run_in(here, yaml.safe_load(example))
    assert result.summary["requests"]["finished"] == 3
    assert result.summary["policy"] != "fcfs"


def test_the_predictor_of_the_page_is_named_in_the_results(here):
    assert run_in(here, {"policy": "by_tenant:ENTRY"}).summary["predictor"] == "tenant mean"


def test_the_page_explains_every_hook_of_an_order():
    hooks = [name for name, member in vars(Order).items() if inspect.isfunction(member) and not name.startswith("__")]
    assert not [name for name in hooks if f"`{name}(" not in PAGE]


def test_the_page_explains_every_option():
    keys = [f"`policy.{name}.{option}`" for name, entry in POLICIES.items() for option in entry.options]
    assert not [key for key in keys if key not in PAGE]

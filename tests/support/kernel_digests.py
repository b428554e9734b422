"""The log digests of random scenarios, those of the property tests, on the kernel of this process.

`python kernel_digests.py EXAMPLES` prints them as JSON, by the module of the property tests: the same scenarios on
either kernel.
"""

from __future__ import annotations

import json
import sys

from hypothesis import Phase, given, settings
from repository import ROOT

sys.path += [str(ROOT), *(str(ROOT / "tests" / "sim" / each) for each in ("engine", "engine/apart", "service"))]


def properties():
    """For each module of property tests its scenarios, and what runs one and returns its logs."""
    import test_apart_properties
    import test_sim_preset_properties
    import test_sim_properties
    import test_sim_service_properties

    def served(story):
        return story.serve(story.senders()[0], macro=True).logs

    def alone(scenario):
        return [scenario.run()]

    def apart(scenario):
        log = test_apart_properties.ran(scenario)
        return [] if log is None else [log]

    return {
        "engine": (test_sim_properties.scenarios(), alone),
        "preset": (test_sim_preset_properties.scenarios(), alone),
        "apart": (test_apart_properties.scenarios(), apart),
        "service": (test_sim_service_properties.stories(), served),
    }


def digests(scenarios, logs_of, examples):
    """The digests of so many scenarios, drawn alike every time."""
    found = []

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
    @given(scenarios)
    def collect(scenario):
        found.append([log.sha256() for log in logs_of(scenario)])

    collect()
    return found


if __name__ == "__main__":
    from sim import kernel

    examples = int(sys.argv[1])
    found = {name: digests(*each, examples) for name, each in properties().items()}
    print(json.dumps({"kernel": kernel.path(), "digests": found}))

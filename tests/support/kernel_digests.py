"""The log digests of random scenarios, those of the property tests, on the kernel of this process.

`python kernel_digests.py EXAMPLES` prints them as JSON, by the module of the property tests, each with a digest of
its scenario. A few scenarios differ from kernel to kernel: Hypothesis also draws numbers that it finds in the sources
of the modules that are imported, and compiled ones have none.
"""

from __future__ import annotations

import hashlib
import json
import re
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
    """(digest of the scenario, digests of its logs) of so many scenarios."""
    found = []

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
    @given(scenarios)
    def collect(scenario):
        text = re.sub(" at 0x[0-9a-f]+", "", repr(scenario))
        found.append((hashlib.sha256(text.encode()).hexdigest(), [log.sha256() for log in logs_of(scenario)]))

    collect()
    return found


if __name__ == "__main__":
    from sim import kernel

    examples = int(sys.argv[1])
    found = {name: digests(*each, examples) for name, each in properties().items()}
    print(json.dumps({"kernel": kernel.path(), "digests": found}))

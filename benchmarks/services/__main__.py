"""`python -m benchmarks.services NAME`: one comparison with published measurements, as Markdown.

A name is a module of this package with `report(data)`, given the folder of the tables: services/ in SLOTSTEP_DATA, or
else in ../shared/data. Deterministic: nothing is timed but the command.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
import time
from importlib import import_module
from pathlib import Path

import benchmarks.services

ROOT = Path(__file__).parent.parent.parent


def main() -> None:
    """Print the report of the comparison that the command line names."""
    names = [found.name for found in pkgutil.iter_modules(benchmarks.services.__path__) if found.name != "__main__"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.services", description=__doc__)
    parser.add_argument("name", choices=names)
    name = parser.parse_args().name
    data = Path(os.environ.get("SLOTSTEP_DATA", ROOT.parent / "shared" / "data")) / "services"
    if not data.is_dir():
        sys.exit(f"no public data at {data}; set SLOTSTEP_DATA to its folder")
    begun = time.process_time()
    print(import_module(f"benchmarks.services.{name}").report(data))
    print(f"\n`python -m benchmarks.services {name}`: {time.process_time() - begun:.0f} s of CPU time.")


if __name__ == "__main__":
    main()

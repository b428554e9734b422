"""What mutation testing found: mutants killed in each part, and survivors that survivors.yaml does not explain.

`make mutants` runs it after `mutmut run`. It exits with 1 if less than 90% of a part is killed or if a survivor is
not in the list; one that is in the list and killed is only named. A mutant on which a test does not end counts as
killed, one that no test runs as a survivor.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import get_module_from_key, orig_function_and_class_names_from_key

LIST = Path(__file__).with_name("survivors.yaml")
PARTS = {
    "scheduler": ("sim/engine/",),
    "memory": ("sim/memory/pool.py", "sim/memory/numbered.py"),
    "prefix": ("sim/memory/prefix.py",),
    "ledger": ("sim/accounting/",),
}
KILLED = {"killed", "timeout", "caught by type check"}
LEAST = 0.9


class Mutant(NamedTuple):
    """A change of one function: `was` are its lines before, `now` those after, without indentation."""

    where: str
    was: str
    now: str


def listed() -> Counter[Mutant]:
    """The survivors that the list explains."""
    groups = yaml.safe_load(LIST.read_text())
    return Counter(Mutant(**entry) for group in groups for entry in group["mutants"])


def mutant(name: str, path: Path) -> Mutant:
    """What a mutant of mutmut changes."""
    function, owner = orig_function_and_class_names_from_key(name)
    where = ".".join(part for part in (get_module_from_key(name), owner, function) if part)
    lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
    was, now = ("\n".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return Mutant(where, was, now)


def results() -> dict[str, tuple[Counter[str], Counter[Mutant]]]:
    """(mutants by status, those not killed) by part."""
    found: dict[str, tuple[Counter[str], Counter[Mutant]]] = {part: (Counter(), Counter()) for part in PARTS}
    for path in walk_mutatable_files():
        part = next((part for part, paths in PARTS.items() if path.as_posix().startswith(paths)), None)
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items() if part else ():
            status = status_by_exit_code[code]
            found[part][0][status] += 1
            if status not in KILLED:
                found[part][1][mutant(name, path)] += 1
    return found


def main() -> int:
    """Print the rates and what is wrong; the exit code."""
    wrong, survivors = 0, Counter[Mutant]()
    for part, (statuses, left) in results().items():
        survivors += left
        killed = sum(statuses[status] for status in KILLED)
        share = killed / max(1, statuses.total())
        others = ", ".join(f"{statuses[status]} {status}" for status in sorted(statuses) if status != "killed")
        print(f"{part:10} {killed} of {statuses.total()} killed, {share:.1%} ({others})")
        wrong += share < LEAST
    known = listed()
    for text, mutants in (("not in the list", survivors - known), ("in the list, but killed", known - survivors)):
        for each in mutants.elements():
            print(f"\n{text}: {each.where}\n- {each.was}\n+ {each.now}")
    wrong += (survivors - known).total()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

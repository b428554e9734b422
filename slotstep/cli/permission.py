"""`--yes`, the same for every command that runs scenarios: leave to run what is too large to be taken for meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", help="Run it however large it is; the limits are in docs/scenario.md.")]


def permitted(settings: Sequence[str] | None, yes: bool) -> list[str]:
    """The overrides of the command line, and with `--yes` the key that it stands for."""
    return [*(settings or ()), *(["allow_large=true"] if yes else ())]

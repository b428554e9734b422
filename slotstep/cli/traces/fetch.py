"""`slotstep trace fetch`: a public trace downloaded."""

from __future__ import annotations

from typing import Annotated

import typer


def fetch(
    name: Annotated[str, typer.Argument(help="Such as azure-2023-conv or mooncake-conversation.")],
) -> None:
    """Download a public trace, check it, print its file.

    Nothing is downloaded if it is there already. The cache is $SLOTSTEP_CACHE, else ~/.cache/slotstep.
    """
    from traces.reading.fetch import fetch as download

    print(download(name))

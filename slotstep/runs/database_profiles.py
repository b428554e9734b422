"""Profiles of the measured database, kept in the user's cache by what they were made of."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from calibrate.profiles.profile import Profile, parse
from reports.files import write_text
from traces.reading.fetch import cache_folder

if TYPE_CHECKING:
    from calibrate.database.request import Request

FOLDER = "database"
"""In the cache folder of slotstep ($SLOTSTEP_CACHE, else the user's own)."""


def database_profile(request: Request, name: str) -> Profile:
    """The profile of a request: from the cache, or made and kept there.

    The cache is by content (`calibrate.database.profile.identity`). Raises ValueError as `from_database`; OSError if
    the cache cannot be written.
    """
    from calibrate.database.profile import from_database, identity

    file = cache_folder() / FOLDER / f"{identity(request)}.yaml"
    if not file.is_file():
        made = from_database(request, name=name, date=datetime.date.today().isoformat())
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, made.text())
    return parse(file.read_bytes(), name, str(file))

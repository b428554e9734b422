"""Profiles by shipped name or by file, as scenarios and commands give them."""

from __future__ import annotations

from pathlib import Path

from calibrate.profile import Profile, named, read

ENDINGS = (".yaml", ".yml")


def is_file(given: str) -> bool:
    """Whether a profile is given as a file, told by its ending, not by a shipped name."""
    return given.endswith(ENDINGS)


def find(given: str) -> Profile:
    """The profile of a shipped name or in a file. Raises ValueError, one line, for what is neither or not one."""
    if not is_file(given):
        return named(given)
    try:
        return read(Path(given))
    except OSError as error:
        raise ValueError(f"{given}: {error.strerror}") from None

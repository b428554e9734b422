"""What data determine about the terms of a fit: the standard error of each, and which cannot be separated.

Computed from the Jacobian at the end of the fit: how the relative residuals change with the logarithm of each
coefficient. Its singular values give the number of independent directions that the data determine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.arrays import Floats

ABSENT = 1e-3
"""A term that moves no prediction by more than a tenth of a percent when it doubles is not seen in the data."""
TIED = 0.1
"""Terms whose effects cancel to a tenth of themselves in some combination are not separated."""
UNSURE = 0.5
"""A coefficient whose standard error is half of it or more is not identified."""


@dataclass(frozen=True)
class Identified:
    """What the data determine about the terms of a fit.

    relative_error  standard error of each coefficient over the coefficient, from the residuals (infinite: unseen)
    unseen          terms with no visible effect
    tied            groups of terms whose effects cannot be separated: only a combination of them is known
    singular        singular values of the Jacobian with columns of length 1, the largest first
    """

    relative_error: dict[str, float]
    unseen: tuple[str, ...]
    tied: tuple[tuple[str, ...], ...]
    singular: tuple[float, ...]

    @property
    def unsure(self) -> tuple[str, ...]:
        """Terms with a relative error of UNSURE or more."""
        return tuple(name for name, error in self.relative_error.items() if error >= UNSURE)

    def lines(self) -> list[str]:
        """The same as sentences; an empty list if every term is determined."""
        said = [f"{name}: not seen in these data; any small value fits" for name in self.unseen]
        said += [f"{' and '.join(group)}: not told apart; only their mixture is known" for group in self.tied]
        grouped = {name for group in self.tied for name in group} | set(self.unseen)
        return said + [
            f"{name}: known to {self.relative_error[name]:.0%} only" for name in self.unsure if name not in grouped
        ]


def identify(names: Sequence[str], jacobian: Floats, residuals: Floats) -> Identified:
    """Evaluate a Jacobian, shape (residuals, names): d residual / d log coefficient; residuals are relative errors.

    Standard errors assume independent residuals. A column of zeros is a coefficient at 0.
    """
    lengths = np.sqrt((jacobian**2).mean(axis=0)) if len(jacobian) else np.zeros(len(names))
    largest = np.abs(jacobian).max(axis=0, initial=0.0)
    seen = np.flatnonzero(largest > ABSENT)
    errors = dict.fromkeys(names, float("inf"))
    unseen = tuple(name for place, name in enumerate(names) if place not in seen)
    if not len(seen):
        return Identified(errors, unseen, (), ())
    scaled = jacobian[:, seen] / (lengths[seen] * np.sqrt(len(jacobian)))
    _, singular, directions = np.linalg.svd(scaled, full_matrices=False)
    noise = float(np.sqrt((residuals**2).sum() / max(len(residuals) - len(seen), 1)))
    spread = np.sqrt(((directions / np.maximum(singular, 1e-12)[:, None]) ** 2).sum(axis=0))
    for place, column in enumerate(seen.tolist()):
        errors[names[column]] = float(noise * spread[place] / (lengths[column] * np.sqrt(len(jacobian))))
    tied = []
    for value, direction in zip(singular, directions, strict=True):
        members = seen[np.abs(direction) > 0.3].tolist()
        if value < TIED and len(members) > 1:
            tied.append(tuple(names[column] for column in members))
    return Identified(errors, unseen, tuple(tied), tuple(singular.tolist()))

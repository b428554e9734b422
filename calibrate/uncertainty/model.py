"""The uncertainty of a step cost: factors common to a whole run, and the covariance of fitted coefficients.

    step = step(c) x decode_median x exp(common z0 + decode z1)       for a step of decodes alone
           step(c) x prompts_median x exp(common z0 + prompts z2)     for a step with a prompt

z0, z1 and z2 are standard normal and drawn once a run: a cost that is wrong is wrong in the same way in every step,
and noise of single steps would average out. `common`, `decode` and `prompts` are standard deviations of
logarithms, so that a factor is above 0. A median other than 1 says that costs made like this one are on the whole too
short (above 1) or too long.

The coefficients c of a fit are drawn from N(fitted, covariance) and projected on what is at least 0, in the metric of
the covariance: the asymptotic distribution of a least-squares estimate with that constraint (D. Andrews, Estimation
when a parameter is on a boundary, Econometrica 67, 1999). Coefficients that are not told apart keep their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

SPREADS = ("common", "decode", "prompts")
MEDIANS = ("decode_median", "prompts_median")
FACTORS = (*MEDIANS, *SPREADS)
UNCERTAINTY = (*FACTORS, "terms", "covariance", "source")
"""Keys of a profile's `uncertainty`."""
MOST = 2.0
"""The largest standard deviation of a logarithm: a factor of more than seven either way says nothing."""


@dataclass(frozen=True)
class Uncertainty:
    """The uncertainty of a step cost.

    decode_median, prompts_median  medians of the factors
    common, decode, prompts        standard deviations of their logarithms
    terms                          names of coefficients, ns, that `covariance` is of
    covariance                     ns^2, shape (terms, terms)
    source                         what the numbers come from

    Raises ValueError for a negative or too large factor, and for a matrix that is no covariance of the terms.
    """

    decode_median: float = 1.0
    prompts_median: float = 1.0
    common: float = 0.0
    decode: float = 0.0
    prompts: float = 0.0
    terms: tuple[str, ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        for name in FACTORS:
            value = getattr(self, name)
            least, most = (0.1, 10) if name in MEDIANS else (0, MOST)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                kind = "factor" if name in MEDIANS else "standard deviation"
                raise ValueError(f"{name} is {value!r}; expected a {kind} from {least:g} to {most:g}")
        shape = [len(row) for row in self.covariance]
        if shape != [len(self.terms)] * len(self.terms):
            raise ValueError(f"covariance has rows of {shape}; expected one row and column for each of the terms")
        if not all(isfinite(value) for row in self.covariance for value in row):
            raise ValueError("covariance has numbers that are not finite; expected ns^2")
        if self.terms:
            matrix = np.array(self.covariance)
            if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(correlations(matrix)).min() < -1e-6:
                raise ValueError("covariance is not symmetric with eigenvalues of at least 0")

    def content(self) -> dict[str, Any]:
        """As a profile holds it."""
        factors = {name: float(f"{getattr(self, name):.4g}") for name in FACTORS}
        if not self.terms:
            return {**factors, "source": self.source}
        rows = [[float(f"{value:.7g}") for value in row] for row in self.covariance]
        return {**factors, "terms": list(self.terms), "covariance": rows, "source": self.source}


def correlations(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A covariance with its variances as 1, those of 0 left."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 0))
    scale = np.where(scale > 0, scale, 1.0)
    found: np.ndarray[Any, np.dtype[np.float64]] = matrix / np.outer(scale, scale)
    return found


def from_mapping(content: Mapping[str, Any]) -> Uncertainty:
    """The uncertainty that a profile states under `uncertainty`.

    Raises ValueError, one line that begins with the key, for anything else.
    """
    terms, rows = content.get("terms", []), content.get("covariance", [])
    if not isinstance(terms, list) or not all(isinstance(name, str) for name in terms):
        raise ValueError(f"terms is {terms!r}; expected a list of names of coefficients")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ValueError("covariance is no list of rows; expected one for each of the terms")
    if not all(isinstance(value, int | float) for row in rows for value in row):
        raise ValueError("covariance has values that are no numbers; expected ns^2")
    factors = {name: content[name] for name in FACTORS if name in content}
    return Uncertainty(
        **factors, terms=tuple(terms), covariance=tuple(map(tuple, rows)), source=str(content["source"])
    )

"""Synthetic workloads: laws of arrival and length, tenants, sessions, system prompts; random streams are named."""

from traces.synthetic.arrivals import AtOnce, Batches, Gamma, Poisson, Ticks, Weibull
from traces.synthetic.empirical_lengths import Empirical, Quantiles
from traces.synthetic.generator import generate, sessions
from traces.synthetic.lengths import (
    Bimodal,
    Exponential,
    Fixed,
    Geometric,
    Lognormal,
    Pareto,
    Uniform,
    Zipf,
)
from traces.synthetic.modulated import Diurnal, Markov, Piece, Piecewise
from traces.synthetic.parser import DURATIONS, parse
from traces.synthetic.spec import Patience, Population, Prefixes, Sessions, Synthetic, Tenant
from traces.synthetic.streams import Stream

__all__ = [
    "DURATIONS",
    "AtOnce",
    "Batches",
    "Bimodal",
    "Diurnal",
    "Empirical",
    "Exponential",
    "Fixed",
    "Gamma",
    "Geometric",
    "Lognormal",
    "Markov",
    "Pareto",
    "Patience",
    "Piece",
    "Piecewise",
    "Poisson",
    "Population",
    "Prefixes",
    "Quantiles",
    "Sessions",
    "Stream",
    "Synthetic",
    "Tenant",
    "Ticks",
    "Uniform",
    "Weibull",
    "Zipf",
    "generate",
    "parse",
    "sessions",
]

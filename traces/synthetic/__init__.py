"""Synthetic workloads: arrival laws, length laws and tenants, drawn from named and seeded streams."""

from traces.synthetic.arrivals import AtOnce, Gamma, Poisson
from traces.synthetic.generator import generate
from traces.synthetic.lengths import Bimodal, Empirical, Exponential, Fixed, Geometric, Lognormal, Pareto
from traces.synthetic.parser import parse
from traces.synthetic.spec import Synthetic, Tenant
from traces.synthetic.streams import Stream

__all__ = [
    "AtOnce",
    "Bimodal",
    "Empirical",
    "Exponential",
    "Fixed",
    "Gamma",
    "Geometric",
    "Lognormal",
    "Pareto",
    "Poisson",
    "Stream",
    "Synthetic",
    "Tenant",
    "generate",
    "parse",
]

"""Step costs as the compiled core takes them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from sim.cost.forms import Affine, Curve, Roofline, StepCost, Unit
from sim.cost.knots import Knots
from sim.cost.scaled import Scaled
from sim.cost.surface import Surface
from sim.cost.table import Lines, Table
from sim.service.core import binding

FORMS = {Unit: binding.UNIT, Affine: binding.AFFINE, Roofline: binding.ROOFLINE, Table: binding.TABLE}
"""The forms that the core computes; those derived from them may differ, and are not among them."""


EXACT = 2**53
"""Whole numbers below this are exact as floats."""


def covered(cost: StepCost) -> bool:
    """Whether the core computes this cost, of which no step must last longer than EXACT ns."""
    inner = cost.cost if isinstance(cost, Scaled) else cost
    shortest = (
        inner.duration if isinstance(inner, Unit) else inner.least_with_prompt if isinstance(inner, Curve) else 0
    )
    return type(cost) in (*FORMS, Scaled) and type(inner) in FORMS and shortest < EXACT


class CompiledCost:
    """A covered cost: `cost` for the core, which reads `kept` as long as it runs."""

    def __init__(self, given: StepCost) -> None:
        self.kept: list[Any] = []
        self.cost = cost = binding.Cost(decode_factor=1.0, prompts_factor=1.0)
        if isinstance(given, Scaled):
            cost.scaled, cost.decode_factor, cost.prompts_factor = 1, given.decode, given.prompts
            given = given.cost
        cost.form = FORMS[type(given)]
        if isinstance(given, Unit):
            cost.unit = given.duration
        if isinstance(given, Curve):
            self.read_curve(given)
        if isinstance(given, Table):
            self.read_table(given)

    def read_curve(self, given: Curve) -> None:
        """The coefficients of a curve."""
        cost = self.cost
        for name in (*binding.Cost.CURVE, *binding.Cost.FORM):
            setattr(cost, name, getattr(given, name, 0.0))
        cost.least, cost.least_with_prompt = given.least, given.least_with_prompt
        cost.needs_longest = given.needs_longest
        sizes = np.array(getattr(given, "graph_sizes", ()), np.int64)
        cost.graph_count, cost.graph_sizes = len(sizes), sizes.ctypes.data
        self.kept.append(sizes)

    def read_table(self, given: Table) -> None:
        """The tables of a measured step."""
        cost = self.cost
        for name in binding.Cost.KNOTS:
            knots = getattr(given, name)
            if knots is not None:
                setattr(cost, name, self.knots(knots))
        for name in binding.Cost.LINES:
            lines = getattr(given, name)
            if lines is not None:
                setattr(cost, name, self.lines(lines))
        cost.has_decode_dense, cost.has_sequences = given.decode_dense is not None, given.sequences is not None

    def knots(self, given: Knots) -> binding.Knots:
        """A function laid out for every whole number."""
        values = np.array(given.laid_out, np.float64)
        self.kept.append(values)
        return binding.Knots(values.ctypes.data, given.at[-1], given.growth)

    def lines(self, given: Lines | Surface) -> binding.Lines:
        """Straight or bent lines."""
        bent = isinstance(given, Surface)
        parts = given.knots if isinstance(given, Surface) else [given.base, given.per_position]
        knots = (binding.Knots * len(parts))(*map(self.knots, parts))
        along = np.array(given.along if isinstance(given, Surface) else (), np.float64)
        self.kept += [knots, along]
        kind = binding.BENT if bent else binding.STRAIGHT
        return binding.Lines(kind, len(along), along.ctypes.data, ctypes.cast(knots, ctypes.POINTER(binding.Knots)))

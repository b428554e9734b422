"""Either scheduler: that of steps which mix prompts and decodes, or that of passes of one kind."""

from __future__ import annotations

from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.scheduler import Scheduler

Planner = Scheduler | ApartScheduler

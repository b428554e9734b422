"""The replicas of a scenario and the router before them. Knows no router by name."""

from __future__ import annotations

from slotstep.fields import Choice, Count, Section


class Cluster(Section):
    """So many equal replicas of the engine, each with its own queue, behind one router."""

    replicas: Count = 1
    router: Choice = "round_robin"

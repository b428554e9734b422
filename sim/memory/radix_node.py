"""A node of a radix tree of cached prefixes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from sim.memory.content import Run


class Node:
    """Some pages of content that follow those of its parent; a root has no parent and no content.

    runs      its content
    size      tokens of it, whole pages
    key       what tells it apart from the other children of its parent: its first page; of a root, its domain
    children  by key, the first created first
    pins      how many sequences hold it, or a node below it
    time      tick at which it was last used
    created   tick at which it was created
    hits      how many sequences have published it
    priority  the highest priority with which it was published, the largest kept longest
    entry     its entry among the leaves that can be evicted; None if it is not one of them
    """

    __slots__ = ("children", "created", "entry", "hits", "key", "parent", "pins", "priority", "runs", "size", "time")

    def __init__(self, parent: Node | None, key: Hashable, runs: list[Run], size: int, time: int) -> None:
        self.parent = parent
        self.key = key
        self.runs = runs
        self.size = size
        self.children: dict[Hashable, Node] = {}
        self.pins = 0
        self.time = self.created = time
        self.hits = 0
        self.priority = 0
        self.entry: Any = None

    def path(self) -> list[Node]:
        """The nodes from below the root to this one."""
        nodes = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        nodes.reverse()
        return nodes

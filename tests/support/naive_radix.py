"""A radix cache as its rules say it, without an index: nodes have all their tokens, a look-up tries every node."""

from dataclasses import dataclass

RANKS = {
    "lru": lambda node: (node.time,),
    "lfu": lambda node: (node.hits, node.time),
    "slru": lambda node: (node.hits >= 2, node.time),
    "fifo": lambda node: (node.created, node.time),
    "filo": lambda node: (-node.created, node.time),
    "mru": lambda node: (-node.time,),
    "priority": lambda node: (node.priority, node.time),
}


@dataclass(eq=False)
class NaiveNode:
    """The tokens from the root to its end, and where those of its parent end."""

    tokens: tuple
    start: int
    created: int
    time: int
    hits: int = 0
    priority: int = -(10**9)
    pins: int = 0

    @property
    def size(self):
        return len(self.tokens) - self.start


class NaiveRadix:
    """`slots` tokens of memory, `page` tokens a page; sequences are keys with what they hold."""

    def __init__(self, slots, page, policy):
        self.page, self.rank = page, RANKS[policy]
        self.nodes, self.clock, self.avail = [], 0, slots
        self.ends, self.inside, self.counted = (
            {},
            {},
            {},
        )  # by sequence: tokens of its path, their number, counted hits

    evictable = property(lambda self: sum(node.size for node in self.nodes if not node.pins))
    protected = property(lambda self: sum(node.size for node in self.nodes if node.pins))

    def tick(self):
        self.clock += 1
        return self.clock

    def whole(self, tokens):
        return tokens[: len(tokens) // self.page * self.page]

    def path(self, end):
        """The nodes that make up the tokens of `end`, from the root down."""
        nodes = [node for node in self.nodes if node.tokens == end[: len(node.tokens)]]
        return sorted(nodes, key=lambda node: node.start)

    def split(self, node, end):
        """Cut a node in two where its tokens are `end` long; the upper part is new."""
        upper = NaiveNode(
            node.tokens[:end], node.start, node.created, self.tick(), node.hits, node.priority, node.pins
        )
        self.nodes.append(upper)
        node.start, node.time = end, self.tick()
        return upper

    def walk(self, tokens, use):
        """How many tokens are there; splits where they end, and gives nodes new times on the way if `use`."""
        at = 0
        while True:
            best = None
            for node in self.nodes:
                if node.start == at and node.tokens[:at] == tokens[:at]:
                    same = at
                    while same < min(len(node.tokens), len(tokens)) and node.tokens[same] == tokens[same]:
                        same += 1
                    same = same // self.page * self.page
                    if same > at:
                        best = node, same
            if best is None:
                return at
            node, at = best
            if use:
                node.time = self.tick()
            if at < len(node.tokens):
                self.split(node, at)
                return at

    def look_up(self, tokens):
        found = self.walk(self.whole(tokens), use=False)
        for node in self.path(tokens[:found]):
            node.time = self.tick()
        return found

    def pin(self, who, end):
        for node in self.path(end):
            node.pins += 1
        self.ends[who], self.inside[who] = end, len(end)

    def unpin(self, who):
        for node in self.path(self.ends.pop(who, ())):
            node.pins -= 1
        self.inside[who] = self.counted[who] = 0

    def evict_until(self, slots):
        gone = 0
        while self.avail < slots:
            leaves = [
                node
                for node in self.nodes
                if not node.pins
                and not any(
                    other.start == len(node.tokens) and other.tokens[: other.start] == node.tokens
                    for other in self.nodes
                )
            ]
            if not leaves:
                break
            leaf = min(leaves, key=self.rank)
            self.nodes.remove(leaf)
            self.avail += leaf.size
            gone += leaf.size
        return gone

    def publish(self, who, tokens, prompt, priority):
        tokens = self.whole(tokens)
        prompt = prompt // self.page * self.page
        had = self.walk(tokens, use=True)
        if had < len(tokens):
            now = self.tick()
            self.nodes.append(NaiveNode(tokens, had, now, now))
        self.avail += max(0, had - self.inside.get(who, 0))
        inner = 0 < prompt < len(tokens)
        for node in self.path(tokens):
            if inner and node.start < prompt < len(node.tokens):
                self.split(node, prompt)
        for node in self.path(tokens):
            node.hits += len(node.tokens) > self.counted.get(who, 0)
            node.priority = max(node.priority, priority + (inner and len(node.tokens) <= prompt))
        for node in self.path(tokens):
            node.pins += 1
        for node in self.path(self.ends.get(who, ())):
            node.pins -= 1
        self.ends[who], self.inside[who], self.counted[who] = tokens, len(tokens), len(tokens)

    def leave(self, who, held):
        self.avail += held - self.inside.get(who, 0)
        self.unpin(who)

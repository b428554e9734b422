"""The fourteen rules of the logged engine, restated naively: pages with identities, a free list, loops per token.

Written from the description that comes with the logs and from nothing else; it shares no code with the
kernel. Slow, and meant to be read beside the rules, whose numbers are in the comments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULTS = {
    "max_num_seqs": 8,
    "max_num_batched_tokens": 2048,
    "max_model_len": 4096,
    "block_size": 16,
    "num_gpu_blocks": 1000,
    "enable_prefix_caching": False,
    "enable_chunked_prefill": True,
    "policy": "fcfs",
    "long_prefill_token_threshold": 0,
    "long_prefill_token_threshold_adaptive": False,
    "scheduler_reserve_full_isl": True,
    "watermark": 0.0,
    "max_num_active_seqs": None,
    "async_scheduling": False,
    "cost": None,
}


@dataclass(eq=False)
class Page:
    key: tuple | None = None
    holders: int = 0


@dataclass(eq=False)
class Asked:
    id: str
    place: int
    prompt: list
    most: int
    arrival: float
    priority: int
    outputs: list = field(default_factory=list)
    computed: int = 0
    pages: list = field(default_factory=list)
    in_flight: int = 0

    @property
    def known(self):
        """Tokens that are there."""
        return self.prompt + self.outputs

    @property
    def tokens(self):
        """How many are there or on the way."""
        return len(self.known) + self.in_flight

    @property
    def urgency(self):
        return self.priority, self.arrival, self.id


class Rules:
    """One engine and the requests of a case; `lines()` is what it logs, but for header and summary."""

    def __init__(self, case):
        self.config = DEFAULTS | case["config"]
        self.size = self.config["block_size"]
        self.timed = self.config["cost"] is not None
        self.late = self.config["async_scheduling"]
        self.free = [Page() for _ in range(self.config["num_gpu_blocks"] - 1)]
        self.cached = []  # pages with a key, in the order they got it
        self.running, self.waiting = [], []
        self.started = set()
        requests = [self.asked(place, request) for place, request in enumerate(case["requests"])]
        self.due = sorted(requests, key=lambda request: (request.arrival, request.place))

    def asked(self, place, request):
        first = 1_000_000_000 + 1_000_000 * place
        prompt = list(request.get("prompt_token_ids", range(first, first + request.get("prompt_len", 0))))
        most = min(request["max_tokens"], self.config["max_model_len"] - len(prompt))  # rule 13
        arrival = request["arrival_time" if self.timed else "arrival_step"]
        return Asked(request["id"], place, prompt, most, arrival, request.get("priority", 0))

    # ------------------------------------------------------------------ the clock

    def lines(self):
        step, clock, flying, finished = 0, 0.0, [], []
        while True:
            now = clock if self.timed else step
            if not (self.running or self.waiting) and self.due and self.due[0].arrival > now:
                step, clock = (step, self.due[0].arrival) if self.timed else (self.due[0].arrival, clock)
                now = clock if self.timed else step
            arrived = [request for request in self.due if request.arrival <= now]
            self.due = self.due[len(arrived) :]
            self.waiting += arrived
            self.rank()
            if not (self.running or self.waiting or finished):
                break
            line = {"type": "step", "step": step, "arrived": [request.id for request in arrived]}
            line |= self.schedule()
            work = self.work
            flying.append((step, work))
            if len(flying) > self.late:
                done, results = flying.pop(0)
                line |= self.update(results) | ({"updated_step": done} if self.late else {})
            else:
                line |= {"sampled": [], "finished": [], "free_blocks_after": len(self.free)}
            finished = line["finished"]
            if line["scheduled"] or arrived or "updated_step" in line:
                yield line
            clock += self.duration(work)
            step += 1
        for done, results in flying:
            yield {"type": "drain", "step": step, "updated_step": done, **self.update(results)}

    def duration(self, work):
        if not self.timed:
            return 0.0
        cost = self.config["cost"]
        tokens = sum(n for _, n, _, _ in work)
        context = sum(computed for _, _, computed, _ in work)
        return cost["t0"] + cost["t_tok"] * tokens + cost["t_seq"] * len(work) + cost["t_ctx"] * context

    def rank(self):
        if self.config["policy"] == "priority":
            self.waiting.sort(key=lambda request: request.urgency)

    # ------------------------------------------------------------------ one step

    def schedule(self):
        self.budget = self.config["max_num_batched_tokens"]
        self.given = {}  # tokens by request id, in order
        self.preempted, self.new, self.resumed, self.hits = [], [], [], {}
        self.present = len(self.running) + len(self.waiting)
        self.go_on()
        if not self.preempted:  # rule 3
            self.admit()
        by_id = {request.id: request for request in self.running}
        before = {name: by_id[name].computed for name in self.given}
        self.work = []
        for name, n in self.given.items():
            request = by_id[name]
            request.computed += n
            catches_up = request.computed == request.tokens
            request.in_flight += catches_up
            self.work.append((request, n, request.computed, catches_up))
        return {
            "scheduled": self.given,
            "computed_before": before,
            "new": self.new,
            "resumed": self.resumed,
            "preempted": self.preempted,
            "hit_tokens": self.hits,
            "running": [request.id for request in self.running],
            "waiting": [request.id for request in self.waiting],
            "blocks": {request.id: len(request.pages) for request in self.running},
            "free_blocks": len(self.free),
        }

    def go_on(self):
        """Rules 1, 2, 9: running requests, in list order, while there is budget."""
        for request in list(self.running):
            if request not in self.running:
                continue
            if not self.budget:
                return
            if len(request.outputs) + request.in_flight >= request.most:  # rule 14: nothing past the last token
                continue
            n = self.capped(request.tokens - request.computed)
            needed = self.needed(request, request.computed + n)
            while needed > len(self.free):
                victim = self.victim()
                self.preempt(victim)
                if victim is request:
                    return
            self.give(request, n, needed)

    def capped(self, n):
        """Rules 2, 4, 5: no more than the threshold and the budget."""
        threshold = self.config["long_prefill_token_threshold"]
        if threshold and self.present > 1:
            if self.config["long_prefill_token_threshold_adaptive"]:
                threshold = max(threshold, self.config["max_num_batched_tokens"] // self.present)
            n = min(n, threshold)
        return min(n, self.budget) if self.config["enable_chunked_prefill"] else n

    def needed(self, request, positions):
        """Pages that a request lacks for so many positions."""
        return max(0, self.pages_for(positions) - len(request.pages))

    def pages_for(self, positions):
        """Rule 8: without the slot of the next token."""
        return -(-positions // self.size)

    def victim(self):
        """Rule 9."""
        if self.config["policy"] == "priority":
            return max(self.running, key=lambda request: request.urgency)
        return self.running[-1]

    def preempt(self, request):
        """Rule 10: by recompute."""
        self.preempted.append(request.id)
        self.running.remove(request)
        self.budget += self.given.pop(request.id, 0)
        self.release(request)
        request.computed = 0
        self.waiting.insert(0, request)
        self.rank()

    def admit(self):
        """Rules 3, 4, 11: waiting requests, head of line, while there are budget and a place."""
        most = self.config["max_num_active_seqs"] or self.config["max_num_seqs"]
        for request in list(self.waiting):
            if not self.budget or len(self.running) >= most:
                return
            if request.in_flight:  # rule 14
                continue
            found = self.find(request)
            hit = len(found) * self.size
            n = self.capped(len(request.known) - hit)
            if n > self.budget or not self.fits(request, found, hit + n):
                return
            self.waiting.remove(request)
            for page in found:
                if not page.holders:
                    self.free.remove(page)
                page.holders += 1
            request.pages = list(found)
            request.computed = hit
            self.running.append(request)
            (self.resumed if request.id in self.started else self.new).append(request.id)
            self.started.add(request.id)
            if hit:
                self.hits[request.id] = hit
            self.give(request, n, self.needed(request, hit + n))

    def fits(self, request, found, positions):
        """Rules 6 and 7: pages for all known tokens, and for the chunk, beside the watermark."""
        idle = sum(not page.holders for page in found)
        spare = self.watermark() if self.running else 0
        wanted = [positions]
        if self.config["scheduler_reserve_full_isl"]:
            wanted.append(len(request.known))
        return all(self.pages_for(each) - len(found) + idle + spare <= len(self.free) for each in wanted)

    def watermark(self):
        return int(self.config["watermark"] * self.config["num_gpu_blocks"])

    def give(self, request, n, needed):
        for _ in range(needed):
            request.pages.append(self.take())
        self.given[request.id] = n
        self.budget -= n
        self.name_pages(request, request.computed + n)

    # ------------------------------------------------------------------ pages

    def take(self):
        """Rule 13: from the front of the free list; what was in the page is forgotten."""
        page = self.free.pop(0)
        if page.key is not None:
            self.cached.remove(page)
            page.key = None
        page.holders = 1
        return page

    def name_pages(self, request, positions):
        """Rule 12: full pages of known tokens get their key."""
        if not self.config["enable_prefix_caching"]:
            return
        for place in range(min(positions, len(request.known)) // self.size):
            page = request.pages[place]
            if page.key is None:
                page.key = tuple(request.known[: (place + 1) * self.size])
                self.cached.append(page)

    def find(self, request):
        """Rule 12: full pages of the longest known prefix, never all tokens."""
        found = []
        if self.config["enable_prefix_caching"]:
            for place in range((len(request.known) - 1) // self.size):
                key = tuple(request.known[: (place + 1) * self.size])
                page = next((page for page in self.cached if page.key == key), None)
                if page is None:
                    break
                found.append(page)
        return found

    def release(self, request):
        """Rule 13: tail first; pages without a key to the front of the free list, with one to its back."""
        for page in reversed(request.pages):
            page.holders -= 1
            if not page.holders:
                self.free.insert(0 if page.key is None else len(self.free), page)
        request.pages = []

    # ------------------------------------------------------------------ results

    def update(self, work):
        """The results of a step: tokens, and the ends of requests."""
        sampled, finished = [], []
        for request, _, _, catches_up in work:
            if not catches_up:
                continue
            request.outputs.append(10_000_000 + 100_000 * request.place + len(request.outputs))
            request.in_flight -= 1
            sampled.append(request.id)
            if len(request.outputs) == request.most:
                finished.append(request.id)
                self.release(request)
                (self.running if request in self.running else self.waiting).remove(request)
            elif self.late and request in self.running:  # rule 14
                self.name_pages(request, request.computed)
        return {"sampled": sampled, "finished": finished, "free_blocks_after": len(self.free)}

"""Publishes the derived numbers as Prometheus gauges."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from slotstep.watch.meter import Observation

TOKENS = "slotstep_tokens_per_slot_step"
STEPS = "slotstep_steps"
ANSWERED = "slotstep_engine_answered"
SEGMENT = "slotstep_segment"
NAMES = (TOKENS, STEPS, ANSWERED, SEGMENT)


class Exporter:
    """Gauges of the last observation, served at `address` (`:9100`, `127.0.0.1:9100`; port 0: any free one)."""

    def __init__(self, address: str) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"found {address!r}; expected [HOST]:PORT, such as :9100")
        registry = CollectorRegistry()
        about = "Tokens delivered over slot-steps bought, exact."
        self.tokens = Gauge(TOKENS, about, ["window"], registry=registry)
        self.steps = Gauge(STEPS, "Steps of the engine.", ["window"], registry=registry)
        self.answered = Gauge(ANSWERED, "Whether the engine's last answer was whole.", registry=registry)
        self.segment = Gauge(SEGMENT, "1, and one more for each restart of the engine.", registry=registry)
        self.server, _ = start_http_server(int(port), host or "0.0.0.0", registry)

    @property
    def port(self) -> int:
        """The port that is served."""
        return int(self.server.server_port)

    def show(self, seen: Observation) -> None:
        """Publish an observation; a window without steps is NaN."""
        self.answered.set(seen.problem is None)
        self.segment.set(seen.segment)
        windows = {
            "interval": seen.interval,
            "since_start": seen.since_start,
            "engine_lifetime": seen.engine_lifetime,
        }
        for window, span in windows.items():
            share = span.tokens_per_slot_step if span else None
            if span is None or share is None:
                self.tokens.labels(window).set(float("nan"))
                self.steps.labels(window).set(0)
            else:
                self.tokens.labels(window).set(share)
                self.steps.labels(window).set(span.as_dict()["steps"])

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

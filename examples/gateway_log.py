"""Makes a gateway's log of an Azure LLM inference trace: other column names, ISO times, status codes.

    python examples/gateway_log.py AzureLLMInferenceTrace_conv.csv hour.csv
    python examples/gateway_log.py AzureLLMInferenceTrace_conv.csv day.csv --day

Arrivals and lengths are those of the trace. Status codes are drawn: one request in a hundred was throttled (429), one
in two hundred was closed by its client (499) after half of its tokens, one in five hundred failed (503). The day
is the hour 24 times, of which each keeps a share of its requests: 20% at 04:00, all at 16:00, on a cosine between.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = 3600
PEAK, LEAST = 16, 0.2
"""The busiest hour of the day, and the share of the requests that the quietest keeps."""
STATUS = ((0.01, 429), (0.015, 499), (0.017, 503), (1.0, 200))
"""Status codes by the upper ends of their probabilities."""
HEADER = ("request_id", "received_at", "api_key", "deployment", "tok_in", "tok_out", "http_status")


def requests(path: Path) -> list[tuple[float, int, int]]:
    """Seconds after the first request, prompt and output of each request of a trace."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = [(row["TIMESTAMP"], row["ContextTokens"], row["GeneratedTokens"]) for row in csv.DictReader(file)]
    times = [datetime.fromisoformat(time[:26]) for time, _, _ in rows]
    return [
        ((time - times[0]).total_seconds(), int(prompt), int(output))
        for time, (_, prompt, output) in zip(times, rows, strict=True)
    ]


def share(hour: int) -> float:
    """The share of the hour's requests that this hour of the day keeps."""
    return LEAST + (1 - LEAST) * (1 + math.cos(2 * math.pi * (hour - PEAK) / 24)) / 2


def lines(found: list[tuple[float, int, int]], day: bool, seed: int = 0) -> Iterator[tuple[object, ...]]:
    """The rows of the log, in order of arrival."""
    draw = random.Random(seed)
    number = 0
    for hour in range(24) if day else [PEAK]:
        for second, prompt, output in found:
            if second >= HOUR or (day and draw.random() >= share(hour)):
                continue
            chance = draw.random()
            status = next(code for end, code in STATUS if chance < end)
            made = {200: output, 499: output // 2}.get(status, 0)
            at = MIDNIGHT + timedelta(seconds=hour * HOUR + second)
            number += 1
            key = f"key-{draw.randrange(8)}"
            yield f"r{number}", at.isoformat(timespec="milliseconds"), key, "chat-prod", prompt, made, status


def main() -> None:
    """Write the log."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--day", action="store_true", help="the hour 24 times, with a daily course")
    given = parser.parse_args()
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(lines(requests(given.trace), given.day))


if __name__ == "__main__":
    main()

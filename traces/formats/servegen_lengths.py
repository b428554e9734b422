"""ServeGen's length histograms: per client and window of 6 hours, the share of each length.

One client per line, `{"client": N, "windows": {start_s: {field: "{value: share, ...}"}}}`; the published
`chunk-N-dataset.json` files hold one client's windows alone, which is then named by the file. A histogram is
the text of a Python dictionary with whole keys (fractions for `reason_ratio`); some are empty. The files have only
the marginal distributions of input and output, not their joint one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.errors import BadInput, shown
from traces.reading import source
from traces.reading.columns.json_rows import json_object, json_value
from traces.reading.head import Head
from traces.reading.pieces import Piece, text
from traces.reading.report import Report

NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?"
PAIR = re.compile(rf"\s*[\"']?({NUMBER})[\"']?\s*:\s*({NUMBER})\s*(?:,|$)")
WINDOW = re.compile(r"[0-9]{1,12}")
FIELDS = ("input_tokens", "text_tokens", "output_tokens")


def matches(head: Head) -> bool:
    """Whether it starts with histograms as text."""
    return head.opening == "{" and '"{' in head.text[:2000] and any(name in head.keys for name in FIELDS)


def chunks(path: Path) -> Iterator[Piece]:
    """The table `histograms`."""
    any_client = False
    for number, line in source.lines(path, source.LARGEST_DOCUMENT):
        client = json_object(path, line, number) if line.endswith(b"}") and line.startswith(b"{") else None
        if client is None:
            client = json_value(path, source.document(path))
            if not isinstance(client, dict):
                raise BadInput(f"{path}: found {shown(client)}; expected a JSON object of windows")
            yield _piece(path, client, 1)
            return
        any_client = True
        yield _piece(path, client, number)
    if not any_client:
        raise BadInput(f"{path}: the file is empty; expected a JSON object per client")


def _piece(path: Path, client: dict[str, Any], number: int) -> Piece:
    report = Report(str(path), rows=1)
    place = f"{path}, row {number}"
    windows = client.get("windows", client if "client" not in client else None)
    if not isinstance(windows, dict):
        raise BadInput(f"{place}: windows is {shown(windows)}; expected an object of histograms by start")
    name = str(client.get("client", path.name.split(".")[0]))
    frames = []
    for start, fields in windows.items():
        if not WINDOW.fullmatch(start) or not isinstance(fields, dict):
            raise BadInput(f"{place}: window {shown(start)} is not a start in seconds with histograms")
        for field, histogram in fields.items():
            values, shares = _histogram(f"{place}: {field} of window {start}", histogram)
            if not len(values):
                report.drop(f"{field}: an empty histogram")
                continue
            frames.append((float(start), field, values, shares))
    counts = [len(values) for _, _, values, _ in frames]
    frame = pd.DataFrame(
        {
            "client": text([name] * sum(counts)),
            "start_s": np.repeat([start for start, *_ in frames], counts).astype(np.float64),
            "field": text(np.repeat(np.array([field for _, field, *_ in frames], object), counts).tolist()),
            "value": np.concatenate([values for *_, values, _ in frames] or [np.zeros(0)]),
            "probability": np.concatenate([shares for *_, shares in frames] or [np.zeros(0)]),
        }
    )
    return Piece(report, tables={"histograms": frame})


def _histogram(place: str, found: object) -> tuple[np.ndarray, np.ndarray]:
    """The values and shares of `{value: share, ...}`. Raises BadInput unless it is one."""
    body = found.strip() if isinstance(found, str) else ""
    if not (body.startswith("{") and body.endswith("}")):
        raise BadInput(f"{place} is {shown(found)}; expected a text such as {{45: 0.25, 46: 0.75}}")
    body = body[1:-1].strip()
    pairs = PAIR.findall(body)
    if PAIR.sub("", body).strip():
        raise BadInput(f"{place} is {shown(found)}; expected a text such as {{45: 0.25, 46: 0.75}}")
    numbers = np.array(pairs, np.float64).reshape(-1, 2)
    if not np.isfinite(numbers).all():
        raise BadInput(f"{place}: a number is too large")
    return numbers[:, 0], numbers[:, 1]

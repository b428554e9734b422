"""Fetches a metrics page completely and in time, or raises the reason why not."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

PIECE = 65_536
LARGEST = 64 * 2**20
ACCEPT = "text/plain;version=0.0.4"


class NoAnswerError(Exception):
    """There was no complete answer; the message has the reason."""


def address(url: str) -> str:
    """The page's URL: `http://` and `/metrics` are added where missing. Raises ValueError for an invalid URL."""
    full = url if "://" in url else f"http://{url}"
    parts = urlsplit(full)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"found {url!r}; expected a URL such as http://localhost:8000/metrics")
    return full if parts.path.strip("/") else f"{full.rstrip('/')}/metrics"


def fetch(url: str, seconds: float) -> str:
    """The text of the page, complete within `seconds`. Raises NoAnswerError."""
    until = time.monotonic() + seconds
    request = urllib.request.Request(url, headers={"Accept": ACCEPT})
    pieces: list[bytes] = []
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            while piece := answer.read1(PIECE):
                pieces.append(piece)
                if time.monotonic() > until:
                    raise NoAnswerError(f"no whole answer within {seconds:g} s")
                if sum(map(len, pieces)) > LARGEST:
                    raise NoAnswerError(f"the answer is larger than {LARGEST // 2**20} MiB")
            announced = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        raise NoAnswerError(f"answered {error.code} {error.reason}") from None
    except TimeoutError:
        raise NoAnswerError(f"no answer within {seconds:g} s") from None
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        raise NoAnswerError(f"no answer within {seconds:g} s" if late else f"no answer: {error.reason}") from None
    except http.client.HTTPException as error:
        raise NoAnswerError(f"the answer broke off: {error}") from None
    except OSError as error:
        raise NoAnswerError(f"no answer: {error}") from None
    whole = b"".join(pieces)
    if announced is not None and len(whole) < int(announced):
        raise NoAnswerError(f"the answer broke off after {len(whole):,} of {int(announced):,} bytes")
    try:
        return whole.decode()
    except UnicodeDecodeError as error:
        raise NoAnswerError(f"byte {error.start} of the answer is not UTF-8 text") from None

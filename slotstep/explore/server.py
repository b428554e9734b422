"""Serves the page of a session on the loopback, at an address with a token that only its reader knows."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from itertools import groupby
from operator import attrgetter

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from slotstep.explore.controls import REACH
from slotstep.explore.session import Session

HOST = "127.0.0.1"
LARGEST = 100_000
"""The largest request that is read, in bytes."""


class Server(ThreadingHTTPServer):
    """A session at `address`; port 0 is any free one. Raises OSError for a port that is taken."""

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self.session = session
        self.token = secrets.token_urlsafe(16)
        self.page = page(session)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print an error, but for that of a reader who left before the answer was there."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def address(self) -> str:
        """The page's address, with its token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


class Handler(BaseHTTPRequestHandler):
    """Answers below the token: the page at "", the last report at "report", and changes posted to "run"."""

    server: Server

    def do_GET(self) -> None:
        """The page or the last report."""
        pages: dict[str | None, str] = {"": self.server.page, "report": self.server.session.report}
        found = pages.get(self.asked())
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self.answer("text/html; charset=utf-8", found)

    def do_POST(self) -> None:
        """Simulate with the values of a JSON object `{values: {KEY: TEXT}, pin: true or false}`."""
        size = self.headers.get("Content-Length", "")
        if self.asked() != "run":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        if not size.isdecimal() or int(size) > LARGEST:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        try:
            posted = json.loads(self.rfile.read(int(size)))
            values, pin = posted["values"], posted["pin"] is True
        except (ValueError, KeyError, TypeError):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        self.answer("application/json", json.dumps(self.server.session.change(values, pin)))

    def asked(self) -> str | None:
        """What is asked for below the token; None without the token."""
        _, token, *rest = self.path.partition("?")[0].split("/", 2)
        return rest[0] if rest and secrets.compare_digest(token.encode(), self.server.token.encode()) else None

    def answer(self, kind: str, text: str) -> None:
        """Send a text."""
        content = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Requests are not logged: addresses have the token."""


def page(session: Session) -> str:
    """The page with the controls of a session, as HTML."""
    own = resources.files("slotstep.explore")
    script, style = ((own / name).read_text("utf-8") for name in ("page.js", "page.css"))
    environment = Environment(
        loader=PackageLoader("slotstep.explore", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    groups = [(name, list(found)) for name, found in groupby(session.controls, attrgetter("group"))]
    return environment.get_template("page.html").render(
        title=session.scenario.name,
        groups=groups,
        reach=REACH,
        said=session.extent(session.pinned),
        scenario=session.pinned.scenario,
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup(style),
    )

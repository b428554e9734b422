"""A metrics page on a local port that gives the answers of a script, one for each time it is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Answer = Callable[[BaseHTTPRequestHandler], None]


def page(text: str) -> Answer:
    """The whole page."""

    def give(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    return give


def half(text: str, announced: bool = True) -> Answer:
    """The first half of it, with or without its length being announced before."""

    def give(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text[: len(text) // 2].encode())

    return give


def slow(text: str, seconds: float) -> Answer:
    """The page, a piece at a time, over so many seconds."""

    def give(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for place in range(10):
            handler.wfile.write(text[place * len(text) // 10 : (place + 1) * len(text) // 10].encode())
            handler.wfile.flush()
            time.sleep(seconds / 10)

    return give


def failing(code: int) -> Answer:
    """An error of the server."""
    return lambda handler: handler.send_error(code)


@contextmanager
def serving(script: Sequence[Answer], port: int = 0) -> Iterator[str]:
    """The address of a server that answers by the script, its last answer again and again; port 0: any free one."""
    rest = list(script)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = rest.pop(0) if len(rest) > 1 else rest[0]
            try:
                answer(self)
            except (BrokenPipeError, ConnectionResetError):
                return

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""`slotstep explore`: a local page that simulates a scenario again whenever one of its values is changed."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.output import open_scenario, say
from slotstep.cli.params import RequestsFile, ScenarioFile, Settings
from traces.errors import BadInput

if TYPE_CHECKING:
    from types import FrameType


def explore(
    scenario: ScenarioFile,
    settings: Settings = None,
    trace: RequestsFile = None,
    requests: Annotated[int, typer.Option(min=1, metavar="N", help="Simulate the first N requests.")] = 500,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0 is any free one.")] = 0,
) -> None:
    """Serve a page on this machine on which a scenario's values are sliders. Ctrl-C ends it."""
    from slotstep.explore.server import HOST, Server
    from slotstep.explore.session import Session

    session = Session(open_scenario(scenario, settings or (), trace), str(scenario), requests)
    try:
        server = Server(session, port)
    except OSError as error:
        raise BadInput(f"--port {port}: {HOST} cannot be listened on: {error.strerror}") from None
    with server:
        signal.signal(signal.SIGTERM, interrupt)
        try:
            print(server.address, flush=True)
            say("Ctrl-C ends it")
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")


def interrupt(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does."""
    raise KeyboardInterrupt

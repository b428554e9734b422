"""Forward-pass metrics from the ZeroMQ sockets on which engines publish them.

A message has three frames: topic, sequence number, and a record as a msgpack map. Needs the extra `live` (pyzmq,
msgpack).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from traces.errors import BadInput, shown


def receive(endpoints: Sequence[str], most: int, seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, record) of each message from the publishers at `endpoints`, such as tcp://host:20380.

    Ends after `most` records, or `seconds` after the start. Raises BadInput for an address that is none, a message
    that is no record, and a missing extra.
    """
    try:
        import msgpack
        import zmq
    except ModuleNotFoundError as error:
        raise BadInput(f"reading a socket needs {error.name}; expected pip install 'slotstep[live]'") from None
    until = time.monotonic() + seconds
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        for endpoint in endpoints:
            try:
                socket.connect(endpoint)
            except zmq.ZMQError as error:
                raise BadInput(f"{endpoint}: {error}; expected tcp://HOST:PORT") from None
        for number in range(1, most + 1):
            left = until - time.monotonic()
            if left <= 0 or not socket.poll(ceil(left * 1000)):
                return
            *_, payload = socket.recv_multipart()
            where = f"{', '.join(endpoints)}, message {number}"
            try:
                record = msgpack.unpackb(payload)
            except (ValueError, msgpack.UnpackException) as error:
                raise BadInput(f"{where}: not msgpack: {error}") from None
            if not isinstance(record, dict):
                raise BadInput(f"{where}: found {shown(record)}; expected a map with version and wall_time")
            yield where, record

"""Ctrl-C ends the command; its workers leave the signal to it, and are ended by it.

A terminal sends SIGINT to every process of a command. A worker that handles it prints a traceback of its own, and one
that still imports its modules cannot handle it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def held_back() -> Iterator[None]:
    """Block SIGINT in this thread; processes and threads that are started meanwhile keep it blocked for good.

    A signal that arrives meanwhile is delivered afterwards.
    """
    resource_tracker.ensure_running()  # its start unblocks SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

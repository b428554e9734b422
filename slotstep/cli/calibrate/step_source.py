"""Where `slotstep calibrate from-steps` reads its steps: a file, or the sockets of running engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slotstep.cli.output import say
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StepSource:
    """The options that say where steps come from; either `file` or `live`.

    records, within  the most records to read from sockets, and for how long
    keep             the file to write those records to
    """

    file: Path | None
    clock: str | None
    prefill_kv: str | None
    live: tuple[str, ...]
    records: int
    within: str
    keep: Path | None

    @property
    def name(self) -> str:
        """The source for messages."""
        return str(self.file or ", ".join(self.live))

    def read(self) -> pd.DataFrame:
        """The steps, columns as `calibrate.fit.step_log`; remarks are printed on standard error.

        Raises BadInput for options that contradict each other, and for a source that has no steps.
        """
        from traces.reading import forward_pass, step_logs
        from traces.reading.head import head

        for option, given, known in (
            ("--clock", self.clock, ("cpu", "wall")),
            ("--prefill-kv", self.prefill_kv, ("before", "after")),
        ):
            if given not in (None, *known):
                raise BadInput(f"{option} {given}: expected {' or '.join(known)}")
        if (self.file is None) == (not self.live):
            raise BadInput("expected either a log of steps, or --live tcp://HOST:PORT")
        if self.keep is not None and not self.live:
            raise BadInput(f"--keep {self.keep}: the steps come from a file; expected it with --live only")
        kind: Any = self.prefill_kv
        if self.file is None:
            received = list(self.received())
            if self.keep is not None:
                self.write(self.keep, [record for _, record in received])
            found = forward_pass.steps(received, self.name, kind)
        elif self.clock is None and forward_pass.is_record(head(self.file)):
            found = forward_pass.read(self.file, kind)
        elif kind is not None:
            raise BadInput(f"--prefill-kv {kind}: expected it with forward-pass metrics only")
        else:
            return step_logs.read(self.file, self.clock)  # type: ignore[arg-type]  # it is one of the two
        for remark in found.remarks:
            say(f"{self.name}: {remark}")
        return found.frame

    def received(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records that the sockets publish, with their places."""
        from slotstep.scenario import units
        from traces.reading.forward_pass_socket import receive

        if self.clock is not None:
            raise BadInput(f"--clock {self.clock}: forward-pass metrics have one clock; expected none with --live")
        try:
            seconds = units.nanoseconds(self.within) / 1e9
        except ValueError as error:
            raise BadInput(f"--within {self.within}: {error}") from None
        return receive(self.live, self.records, seconds)

    def write(self, path: Path, records: list[dict[str, Any]]) -> None:
        """Write records as JSON lines."""
        from reports.files import write_lines

        write_lines(path, (json.dumps(record, separators=(",", ":")) + "\n" for record in records))
        say(f"{len(records):,} records written to {path}")

"""The content of a trace file as typed frames: a workload, measurements, and other tables.

`Trace.workload`, one row per request, sorted by arrival (ties in the file's order). Columns without data in the file
are absent; `string` is pandas' nullable text, `Int64` its nullable integer.

    id           string   unique in the file; the row number from "1" where the file has no ids
    run          string   which of several runs in one file; arrivals count from the run's first
    arrival_ns   int64    ns after the first request's arrival; absent when the file has lengths only
    prompt       int64    tokens, at least 1
    output       int64    tokens generated, at least 1; absent when the file does not have them
    max_output   Int64    the limit the client declared, tokens
    tenant       string   the tenant; "default" where the file has none (then the column is absent)
    model        string   the model requested
    session      string   conversation; missing for a request outside any
    turn         Int64    position in the session, 0 for the first
    parent       string   id of the request this one follows
    think_ns     Int64    ns from the parent's end to this arrival. Where it is set the arrival depended on that end;
                          `arrival_ns` is then the earliest possible one (the report counts these rows)
    priority     Int64    smaller is more urgent
    deadline_ns  Int64    ns after the arrival
    prefix_group string   requests of one group share the first `prefix` tokens of their prompts
    prefix       Int64    tokens
    images       Int64    images in the prompt, whose tokens `prompt` may or may not count (see the format)
    blocks       object   tuple of block ids of `Trace.block_size` tokens, the last perhaps partial; a block's id
                          identifies its content and all before it, within a session if `Trace.local_blocks`
    tokens       object   tuple of the prompt's token ids
    output_tokens object  tuple of the output's token ids

`Trace.measurements`, one row per request, failed ones included, in the workload's order:

    id, run, tenant, model, session   as above
    status       string   "ok", "failed", "timed_out", "cancelled" or "throttled"
    error        string   the file's own words
    arrival_ns   Int64    when the request was due, ns after the first, on the workload's clock
    sent_ns      Int64    when the client sent it ┐
    queued_ns    Int64    when the server took it │ ns after the earliest time that the file has on the clock of
    scheduled_ns Int64    its first admission     │ its measurements, which need not be arrival_ns's clock:
    first_ns     Int64    its first token         │ never subtract these from arrival_ns
    last_ns      Int64    its last token          ┘
    wait_s       float64  s from queue entry to first admission, NaN where unknown (so are all below)
    ttft_s       float64  s from sending (or from queue entry: a note says so) to the first token
    tpot_s       float64  s per output token after the first: (e2e - ttft) / (output - 1)
    e2e_s        float64  s from sending (or queue entry) to the last token
    itl_s        object   array of the gaps between tokens (or chunks of a stream), s
    prompt       Int64    prompt tokens as the server counted them, else as the client did
    output       Int64    tokens delivered
    cached       Int64    prompt tokens found in a prefix cache

`Trace.tables` holds what is not one row per request, by name:

    rates        client (string), start_s (float64), rate (1/s, float64), cv (float64, of the gaps),
                 process (string, missing without traffic), shape, scale_s (float64): a row per client and window
    histograms   client (string), start_s (float64), field (string), value (float64), probability (float64)
    chunks       id (string), chunk (int64), at_ns (int64, on the measurements' clock): a row per streamed chunk
    runs         a row per run, the file's own aggregates under their own names
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from sim.request import Request
from traces.errors import BadInput, known_keys, nearest, shown
from traces.reading.report import Report

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["workload", "lengths", "rates", "measurements"]
CODES = {"429": "throttled", "499": "cancelled"}
"""Status codes of a gateway that are no plain failure: RFC 6585 section 4, and nginx's of a client that closed."""
STATUSES = ("ok", "failed", "timed_out", "cancelled", "throttled")
FILTERS = ("tenant", "model", "status")
REQUEST_COLUMNS = (
    "id",
    "arrival_ns",
    "prompt",
    "output",
    "tenant",
    "max_output",
    "priority",
    "tokens",
    "blocks",
    "session",
    "think_ns",
)


@dataclass(frozen=True)
class Trace:
    """The content of one file; see the module's docstring for the columns.

    kind          "workload" can be replayed (it may have measurements too), "lengths" has no arrivals, "rates" no
                  requests, and "measurements" no lengths or arrivals to replay
    report        rows read, kept, changed and dropped
    block_size    tokens of a full block, 0 without blocks
    local_blocks  block ids are only comparable within a session
    tick_ns       distance of the ticks that arrivals are snapped to, 0 if they are not; jitter of this width spreads
                  them
    """

    kind: Kind
    report: Report
    workload: pd.DataFrame | None = None
    measurements: pd.DataFrame | None = None
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    block_size: int = 0
    local_blocks: bool = False
    tick_ns: int = 0

    @property
    def runs(self) -> list[str]:
        """The names of the runs in the file, in its order; empty if the file does not name runs."""
        for frame in (self.workload, self.measurements):
            if frame is not None and "run" in frame:
                return [str(name) for name in frame["run"].unique()]
        return []

    def run(self, name: str) -> Trace:
        """The trace of run `name` alone. Raises BadInput if there is no run of that name."""
        if not self.runs:
            raise BadInput(f"{self.report.file}: no run {shown(name)}; the file does not name runs")
        if name not in self.runs:
            raise BadInput(f"{self.report.file}: no run {shown(name)}; did you mean {nearest(name, self.runs)}?")
        return replace(
            self,
            workload=_rows_of(self.workload, name),
            measurements=_rows_of(self.measurements, name),
            tables={title: _rows_of(table, name) for title, table in self.tables.items()},
        )

    def only(self, wanted: Mapping[str, Sequence[str]]) -> Trace:
        """The trace with the rows of the workload that have one of the values in each column of `wanted`.

        The columns are `tenant`, `model` and `status`, the last that of the request's measurement, `ok` without one;
        arrivals stay on the clock of the whole file. Raises BadInput for another column, for one that the file does
        not have, and for a value that no row has.
        """
        known_keys(wanted, FILTERS, "only.")
        frame = self.workload
        for name, values in wanted.items():
            column = None if frame is None else self._column(frame, name)
            if frame is None or column is None:
                raise BadInput(f"{self.report.file}: only.{name}: no {name} in this file; expected none")
            present = [str(value) for value in column.dropna().unique()]
            for value in values:
                if value not in present:
                    known = " or ".join(present[:5])
                    raise BadInput(
                        f"{self.report.file}: only.{name}: no request has {shown(value)}; expected {known}"
                    )
            frame = frame[column.isin(list(values))].reset_index(drop=True)
        return replace(self, workload=frame)

    def _column(self, frame: pd.DataFrame, name: str) -> pd.Series[Any] | None:
        """The tenant, model or status of each row of the workload; None if the file does not say."""
        if name != "status":
            return frame.get(name)
        if self.measurements is None or "status" not in self.measurements:
            return None
        states = self.measurements.drop_duplicates("id").set_index("id")["status"]
        return frame["id"].map(states).fillna("ok")

    @property
    def timed(self) -> bool:
        """Whether the workload has arrivals."""
        return self.workload is not None and "arrival_ns" in self.workload

    def requests(self, run: str | None = None, tenant: str = "default", timed: bool = True) -> list[Request]:
        """The workload as requests, sorted by arrival; `tenant` is used where the file has no tenants.

        A turn that depends on the end of another arrives at its earliest possible time. Block ids that are local to a
        session get the session's name as prefix. Unless `timed`, requests of a file without arrivals all arrive at 0,
        in the file's order. Raises BadInput if the file has no arrivals (and `timed`), no lengths, no request left,
        or several runs of which none is named.
        """
        if run is not None:
            return self.run(run).requests(tenant=tenant, timed=timed)
        if len(self.runs) > 1:
            names = ", ".join(self.runs[:5]) + (", ..." if len(self.runs) > 5 else "")
            raise BadInput(f"{self.report.file}: has {len(self.runs)} runs; expected the name of one: {names}")
        frame = self.workload
        words = {"arrival_ns": "arrival times", "prompt": "prompt lengths", "output": "output lengths"}
        needed = words if timed else tuple(words)[1:]
        missing = [words[name] for name in needed if frame is None or name not in frame]
        if frame is None or missing:
            lacks = ", ".join(missing)
            raise BadInput(
                f"{self.report.file}: no {lacks} in this file ({self.report.format}); it cannot be replayed"
            )
        if frame.empty:
            raise BadInput(f"{self.report.file}: no request to replay; every row was dropped")
        return list(self._requests(frame, tenant))

    def _requests(self, frame: pd.DataFrame, tenant: str) -> Iterator[Request]:
        import pandas as pd

        nothing: list[None] = [None] * len(frame)
        columns = {name: frame[name].tolist() if name in frame else nothing for name in REQUEST_COLUMNS}
        if not self.timed:
            columns["arrival_ns"] = [0] * len(frame)
        for key, arrival, prompt, output, payer, limit, priority, tokens, blocks, session, think in zip(
            *columns.values(), strict=True
        ):
            if self.local_blocks and blocks:
                blocks = tuple(f"{session}/{block}" for block in blocks)
            yield Request(
                key,
                arrival,
                prompt,
                output,
                tenant if payer is None or payer is pd.NA else payer,
                0 if limit is None or limit is pd.NA else int(limit),
                0 if priority is None or priority is pd.NA else int(priority),
                tokens or None,
                blocks or (),
                self.block_size if blocks else 0,
                session="" if session is None or session is pd.NA else session,
                think=None if think is None or think is pd.NA else int(think),
            )


def _rows_of(frame: Any, name: str) -> Any:
    """The rows of one run; a frame without a column `run` is returned whole."""
    if frame is None or "run" not in frame:
        return frame
    return frame[frame["run"] == name].reset_index(drop=True)

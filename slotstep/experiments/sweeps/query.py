"""SQL queries of a sweep's table, run by DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pandas as pd

from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.experiments.sweeps.store import Store


def ask(store: Store, query: str, option: str = "--query") -> pd.DataFrame:
    """The answer to a query on the table `runs`, a row per run of the present grid, and `earlier`, the other rows.

    Raises BadInput, with the option that gave it, for an invalid query.
    """
    with duckdb.connect() as connection:
        connection.register("runs", store.table())
        if "earlier" in query:
            connection.register("earlier", store.earlier())
        try:
            answer: pd.DataFrame = connection.execute(query).df()
        except duckdb.Error as error:
            raise BadInput(f"{option}: {str(error).strip()}") from None
    return answer


def overview(store: Store, shown: Iterable[str]) -> str:
    """The query for the axes and these columns of the runs that ended, sorted; the heads are the columns' names."""
    columns = ", ".join(f'"{name}"' for name in dict.fromkeys([*store.axes, *shown]))
    order = ", ".join(f'"{name}"' for name in store.axes) or "run"
    return f"SELECT {columns} FROM runs WHERE status = 'ended' ORDER BY {order}"


def failures(store: Store) -> int:
    """The number of failed runs."""
    return int(ask(store, "SELECT count(*) AS n FROM runs WHERE status = 'failed'")["n"][0])


def held_back(store: Store) -> bool:
    """Whether in any run a request was sent later than its client wanted."""
    return bool(ask(store, "SELECT max(client_wait_s_max) > 0 AS held FROM runs").fillna(False)["held"][0])


def as_json(frame: pd.DataFrame) -> str:
    """A frame as a JSON array of objects; missing values are null."""
    rows: str = frame.to_json(orient="records", date_format="iso", double_precision=15)
    return json.dumps(json.loads(rows), indent=2, ensure_ascii=False)


def show(frame: pd.DataFrame) -> None:
    """Print a frame as a table, or one record after another if it is too wide. Heads are wrapped where necessary."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from reports.units import printable

    console = Console()
    names = [printable(str(name)) for name in frame.columns]
    rows = [[printable(shown(value)) for value in values] for values in frame.itertuples(index=False)]
    cells = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [max(map(len, parts(name)), default=0) for name in names]
    if not rows:
        console.print("no rows")
    elif sum(words) + len(words) <= console.width:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        folded = [max(pair) for pair in zip(words, cells, strict=True)]
        tight = sum(folded) + len(folded) <= console.width < sum(map(max, map(len, names), cells)) + len(cells)
        for name, width, kind in zip(names, folded, frame.dtypes, strict=True):
            side: Literal["left", "right"] = "right" if kind.kind in "iuf" else "left"
            head = wrapped(name, width) if tight else name
            table.add_column(head, justify=side, width=width if tight else None, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
    else:
        for number, row in enumerate(rows, start=1):
            record = Table.grid(padding=(0, 2, 0, 0))
            for name, value in zip(names, row, strict=True):
                record.add_row(Text(name), Text(value, overflow="fold"))
            console.print(Text(f"row {number} of {len(rows)}"), record, "")


def parts(name: str) -> list[str]:
    """A head in pieces that stay whole: it may be wrapped at a space and after an underscore."""
    return re.findall(r"[^\s_]+_*|_+", name)


def wrapped(name: str, width: int) -> str:
    """A head on lines of at most `width` characters."""
    lines: list[str] = []
    for word in name.split():
        for place, part in enumerate(parts(word)):
            space = " " if lines and not place else ""
            if lines and len(lines[-1]) + len(space) + len(part) <= width:
                lines[-1] += space + part
            else:
                lines.append(part)
    return "\n".join(lines)


def shown(value: Any) -> str:
    """A value as text: floats with four significant digits, a dash for missing values."""
    if pd.isna(value):
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value)

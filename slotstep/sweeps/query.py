"""Questions to a sweep's table, in SQL, answered by DuckDB on the files as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb

from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from slotstep.sweeps.store import Store


def ask(store: Store, query: str) -> pd.DataFrame:
    """The answer to a query on the table `runs`, a row per run. Raises BadInput for what DuckDB refuses."""
    with duckdb.connect() as connection:
        connection.register("runs", store.table())
        try:
            answer: pd.DataFrame = connection.execute(query).df()
        except duckdb.Error as error:
            raise BadInput(f"--query: {str(error).strip()}") from None
    return answer


def overview(store: Store, headlines: Mapping[str, str]) -> str:
    """The query for the axes and these columns (the head of each by its name) of the runs that ended, sorted."""
    axes = {column: axis["key"].rpartition(".")[2] for column, axis in store.axes.items()}
    if len(set(axes.values())) < len(axes):
        axes = {column: axis["key"] for column, axis in store.axes.items()}
    columns = ", ".join(f'"{name}" AS "{head}"' for name, head in (axes | dict(headlines)).items())
    order = ", ".join(f'"{name}"' for name in store.axes) or "run"
    return f"SELECT {columns} FROM runs WHERE status = 'ended' ORDER BY {order}"


def failures(store: Store) -> int:
    """How many runs have failed."""
    return int(ask(store, "SELECT count(*) AS n FROM runs WHERE status = 'failed'")["n"][0])


def as_json(frame: pd.DataFrame) -> str:
    """A frame as a JSON array of objects; what is missing is null."""
    rows: str = frame.to_json(orient="records", date_format="iso", double_precision=15)
    return json.dumps(json.loads(rows), indent=2, ensure_ascii=False)


def show(frame: pd.DataFrame) -> None:
    """A frame as a table on standard output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from reports.units import printable

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name, kind in frame.dtypes.items():
        table.add_column(str(name), justify="left" if kind.kind not in "iuf" else "right", overflow="fold")
    for values in frame.itertuples(index=False):
        table.add_row(*(Text(printable(shown(value))) for value in values))
    Console().print(table)


def shown(value: object) -> str:
    """A value as a person reads it: whole numbers whole, others with four digits that matter, a dash for none."""
    if value is None or value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value)

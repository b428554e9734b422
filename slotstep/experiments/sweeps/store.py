"""The directory of a sweep: its axes, and a file for each run.

    DIR/sweep.json          the axes: column, key and type of each
    DIR/grid.json           the names of the runs of the present grid, the last that was swept into it
    DIR/runs/NAME.parquet   one row; NAME is the run's identity

Rows of earlier grids (another scenario, other code, an input with another content) stay, apart from the present ones.
Files are written atomically, and the same run always gives the same bytes: sweeps may share a directory, and a killed
sweep leaves nothing to repair.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from reports import files
from slotstep.experiments.sweeps import row
from slotstep.runs.result import prepare
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from slotstep.experiments.sweeps.grid import Kind

FORMAT = "slotstep sweep 1"
GRID = "grid.json"
PACKING: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
"""Without dictionary and statistics, which are of no use in files of one row."""


@dataclass(frozen=True)
class Store:
    """A sweep's directory; `axes` by column: key and type."""

    folder: Path
    axes: Mapping[str, Mapping[str, Any]]

    @property
    def kinds(self) -> dict[str, Kind]:
        """The type of each axis's column."""
        return {column: axis["type"] for column, axis in self.axes.items()}

    @property
    def runs(self) -> Path:
        """The folder of the rows."""
        return self.folder / "runs"

    def has(self, run: str) -> bool:
        """Whether this run has a row."""
        return self.path(run).exists()

    def failed(self, run: str) -> bool:
        """Whether this run has the row of a failure."""
        return self.has(run) and pq.read_table(self.path(run), columns=["status"])["status"][0].as_py() == "failed"

    def write(self, line: row.Row) -> None:
        """Write a row atomically. Raises OSError."""
        with files.atomically(self.path(line["run"]), through=self.folder) as temporary:
            more = json.loads(line.get("summary") or "{}").get("metrics", ())
            pq.write_table(row.table([line], self.kinds, more), temporary, **PACKING)

    def path(self, run: str) -> Path:
        """The file of a run."""
        return self.runs / f"{run}.parquet"

    def choose(self, runs: Iterable[str]) -> None:
        """Make these runs the present grid. Raises OSError."""
        files.write_json(self.folder / GRID, {"runs": sorted(runs)})

    def chosen(self) -> frozenset[str] | None:
        """The runs of the present grid; None for a directory without one. Raises BadInput for a damaged one."""
        path = self.folder / GRID
        try:
            return frozenset(json.loads(path.read_text())["runs"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path}: expected what `slotstep sweep` wrote: {error}") from None

    def table(self) -> pa.Table:
        """The rows of the present grid, or all in a directory without one, as `read`."""
        return self.read(self.paths()[0])

    def earlier(self) -> pa.Table:
        """The rows that are not of the present grid, as `read`."""
        return self.read(self.paths()[1])

    def paths(self) -> tuple[list[Path], list[Path]]:
        """The files of the rows of the present grid, and those of the others. Raises BadInput as `chosen`."""
        present = self.chosen()
        every = sorted(self.runs.glob("*.parquet"))
        mine = every if present is None else [path for path in every if path.stem in present]
        return mine, [] if present is None else [path for path in every if path.stem not in present]

    def read(self, paths: Iterable[Path]) -> pa.Table:
        """The rows in these files, sorted by the axes and then by name; a metric that a row does not have is null.

        So rows of another version of slotstep, or of scenarios with further metrics, are read. Raises BadInput for
        rows with a column of another type.
        """
        parts = [pq.read_table(path) for path in paths]
        try:
            whole = pa.concat_tables([row.table([], self.kinds), *parts], promote_options="default")
        except pa.ArrowException as error:
            raise BadInput(
                f"{self.runs}: has rows with a column of another type, of another version of slotstep: {error}"
            ) from None
        return whole.sort_by([(name, "ascending") for name in (*self.axes, "run")])

    def frame(self) -> pd.DataFrame:
        """The rows of the present grid as a pandas frame."""
        frame: pd.DataFrame = self.table().to_pandas()
        return frame


def make(folder: Path, keys: Mapping[str, str], kinds: Mapping[str, Kind]) -> Store:
    """The directory of a sweep over these axes, created if necessary.

    Raises BadInput for a folder that cannot be written, and for the directory of a sweep over other axes.
    """
    axes = {column: {"key": key, "type": kinds[column]} for column, key in keys.items()}
    prepare(folder / "runs")
    content = {"format": FORMAT, "axes": axes}
    written = files.write_json(folder / f".sweep.{os.getpid()}.json", content)
    try:
        os.link(written, folder / "sweep.json")
    except FileExistsError:
        there = opened(folder)
        if there.axes != axes:
            raise BadInput(
                f"{folder}: holds a sweep over {described(there.axes)}, this one is over {described(axes)}; "
                "expected another directory"
            ) from None
    finally:
        written.unlink()
    return Store(folder, axes)


def opened(folder: Path) -> Store:
    """The directory of a sweep. Raises BadInput if it is not one."""
    try:
        content = json.loads((folder / "sweep.json").read_text())
        found = content["format"]
        if found != FORMAT:
            raise BadInput(f"{folder / 'sweep.json'}: its format is {found!r}; expected {FORMAT!r}")
        return Store(folder, content["axes"])
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{folder}: no sweep.json in it; expected a directory that `slotstep sweep` made") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{folder / 'sweep.json'}: expected what `slotstep sweep` wrote: {error}") from None


def described(axes: Mapping[str, Mapping[str, Any]]) -> str:
    """Axes as text."""
    return ", ".join(f"{axis['key']} ({axis['type']})" for axis in axes.values()) or "nothing"

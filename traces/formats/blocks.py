"""Hash ids of prompt blocks, checked against the prompt's length; shared by several formats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traces.reading.columns.json_rows import JsonRows
from traces.reading.report import Report

IDS = "a list of whole numbers or texts"


def is_id(value: object) -> bool:
    """Whether a value can be a block id."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def covering(
    rows: JsonRows, name: str, prompt: NDArray[np.int64], size: int, report: Report
) -> list[tuple[int | str, ...]] | None:
    """The block ids of each row, the last block perhaps partial; None if no row has any.

    Rows without exactly one id for every `size` tokens of the prompt lose their ids and are counted as changed.
    """
    lists = rows.lists(name, is_id, IDS)
    if not any(lists):
        return None
    wanted = -(-prompt // size)
    fits = [isinstance(ids, list) and len(ids) == count for ids, count in zip(lists, wanted.tolist(), strict=True)]
    misfits = sum(bool(ids) and not fit for ids, fit in zip(lists, fits, strict=True))
    report.change(f"{name} are not one for every {size} tokens of the prompt: blocks left out", misfits)
    return [tuple(ids) if ids and fit else () for ids, fit in zip(lists, fits, strict=True)]

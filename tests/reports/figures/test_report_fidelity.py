"""A prediction beside a measured run: what the figure shows, and what it says when there is nothing to show."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports.figures.fidelity import fidelity

SERIES = pd.DataFrame(
    {
        "t": [0.0, 1.0, 2.0],
        "in_flight_measured": [0, 3, 1],
        "in_flight_predicted": [0, 2, 1],
        "without_token_measured": [0, 1, 0],
        "without_token_predicted": [0, 1, 0],
    }
)


def texts(axes: object) -> set[str]:
    """The words in a panel."""
    return {text.get_text() for text in axes.texts}  # type: ignore[attr-defined]


def test_equal_quantiles_lie_on_the_diagonal_and_the_tail_is_apart() -> None:
    values = np.arange(1.0, 101.0)
    pairs = pd.DataFrame({f"ttft_s_{side}": values for side in ("measured", "predicted")})
    figure = fidelity("run $1", pairs, SERIES)
    FigureCanvasAgg(figure).draw()
    ttft, tpot, e2e, flight, token = figure.axes
    diagonal, bulk, tail = ttft.get_lines()
    assert np.array_equal(bulk.get_xdata(), bulk.get_ydata())
    assert len(tail.get_xdata()) == 3
    assert max(tail.get_xdata()) == 100.0 == max(diagonal.get_xdata())
    assert "run $1" in texts(ttft)
    assert "no samples" in texts(tpot) & texts(e2e)
    measured, predicted = flight.get_lines()
    assert (max(measured.get_ydata()), max(predicted.get_ydata())) == (3, 2)
    assert len(token.get_lines()) == 2

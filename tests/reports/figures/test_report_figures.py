"""Distributions and the ledger, by what is drawn; and files that are written whole."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from report_examples import OUTPUTS, a_run, account

from reports import ledger_rows
from reports.figures.distributions import MOST_POINTS, latency_distributions, survival
from reports.figures.ledger import ledger
from reports.figures.png import write_png


def requests(**latencies: list[float]) -> pd.DataFrame:
    n = max(map(len, latencies.values()))
    columns = dict.fromkeys(("wait_s", "ttft_s", "tpot_s", "e2e_s"), [np.nan] * n)
    return pd.DataFrame(columns | latencies)


def legend(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_share_that_took_longer_falls_by_one_request_at_each_latency():
    ends = [n / 1000 for n in OUTPUTS.values()]
    *_, e2e = latency_distributions({"static": requests(e2e_s=ends)}).axes
    (line,) = e2e.get_lines()
    times, shares = line.get_data()
    assert list(zip(times[1:], shares[1:], strict=True)) == [
        (0.005, 7 / 8),
        (0.006, 5 / 8),
        (0.007, 4 / 8),
        (0.008, 3 / 8),
        (0.009, 2 / 8),
        (0.011, 1 / 8),
        (0.120, 0),
    ]
    assert shares[0] == 1
    assert line.get_drawstyle() == "steps-post"
    assert e2e.get_yscale() == "log"


def test_sample_sizes_are_in_the_legend_and_the_missing_are_counted():
    figure = latency_distributions(
        {"fcfs": requests(wait_s=[1.0, 2.0, 3.0]), "_sjf$": requests(wait_s=[1.0, np.nan, np.nan])}
    )
    wait, ttft, _, _ = figure.axes
    assert legend(wait) == ["fcfs (n = 3)", "_sjf$ (n = 1 of 3)"]
    assert not any(text.get_parse_math() for text in wait.get_legend().get_texts())
    assert "no samples" in [text.get_text() for text in ttft.texts]
    first, second = wait.get_lines()
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()


def test_a_wide_range_gets_a_logarithmic_axis_and_zeros_lie_at_its_left_end():
    wait = latency_distributions({"fcfs": requests(wait_s=[0.0, 0.0, 0.001, 10.0])}).axes[0]
    assert wait.get_xscale() == "log"
    times, shares = wait.get_lines()[0].get_data()
    assert times[1] == wait.get_xlim()[0] < 0.001
    assert list(shares) == [1, 0.5, 0.25, 0]


def test_a_narrow_range_gets_a_linear_axis():
    tpot = latency_distributions({"fcfs": requests(tpot_s=[0.02, 0.03])}).axes[2]
    assert tpot.get_xscale() == "linear"


def test_a_latency_all_share_is_drawn_at_its_only_tick():
    figure = latency_distributions({"fcfs": requests(wait_s=[0.0] * 8, ttft_s=[0.001] * 8)})
    figure.canvas.draw()
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0 s"]
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["1 ms"]


def test_a_long_sample_keeps_its_tail_and_every_kept_point_is_exact():
    n = 100_000
    values, longer = survival(np.arange(n, dtype=np.float64))
    assert len(values) <= MOST_POINTS
    assert np.array_equal(longer, (n - 1 - values) / n)
    assert np.array_equal(values[-1000:], np.arange(n - 1000, n))
    assert np.diff(values).max() < n / 1000


def segments(axes: Axes) -> dict[str, list[tuple[float, float, str]]]:
    """(left, width, colour) of the bars, by row."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for container in axes.containers:
        for patch in container:
            bar = (round(patch.get_x(), 9), round(patch.get_width(), 9), to_hex(patch.get_facecolor()))
            found.setdefault(patch.get_gid(), []).append(bar)
    return found


COLOURS = {row.key: row.colour for row in ledger_rows.ROWS}


def test_the_ledger_stacks_shares_of_what_was_bought():
    static = a_run(
        slot_steps=account(decode=60, prefill=20, held=20),
        slot_seconds=account(decode=3.0, prefill=3.0, held=3.0, idle=1.0),
    )
    figure = ledger({"static": static})
    steps, seconds = figure.axes
    assert segments(steps) == {
        "decode": [(0, 0.6, COLOURS["decode"])],
        "prefill": [(0.6, 0.2, COLOURS["prefill"])],
        "held": [(0.8, 0.2, COLOURS["held"])],
    }
    assert segments(seconds)["idle"] == [(0.9, 0.1, COLOURS["idle"])]
    texts = [text.get_text() for text in steps.texts]
    assert {"60.0%", "20.0%", "100\nslot-steps"} <= set(texts)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["decode", "prefill", "held", "idle"]


def test_a_thin_segment_carries_no_number():
    steps, _ = ledger({"x": a_run(slot_steps=account(decode=96, held=4))}).axes
    texts = [text.get_text() for text in steps.texts]
    assert "96.0%" in texts
    assert "4.0%" not in texts


def test_there_is_one_bar_a_run_with_its_name_literally():
    figure = ledger({"$fcfs$": a_run(), "_sjf": a_run()})
    figure.canvas.draw()
    labels = figure.axes[0].get_yticklabels()
    assert [text.get_text() for text in labels] == ["$fcfs$", "_sjf"]
    assert not any(text.get_parse_math() for text in labels)
    assert len(segments(figure.axes[0])["decode"]) == 2


def test_rows_have_colours_and_glyphs_of_their_own():
    for look in ("colour", "glyph", "ascii"):
        assert len({getattr(row, look) for row in ledger_rows.ROWS}) == len(ledger_rows.ROWS)


@pytest.mark.parametrize("draw", [latency_distributions, ledger])
def test_nothing_to_draw_is_an_error(draw):
    with pytest.raises(ValueError, match="to draw"):
        draw({})


def test_figures_are_written_as_png_at_200_dots_an_inch(tmp_path: Path):
    paths = write_png({"ledger": ledger({"x": a_run()})}, tmp_path)
    assert paths == [tmp_path / "ledger.png"]
    content = paths[0].read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == 2000
    assert list(tmp_path.iterdir()) == paths


class Broken(Figure):
    """Fails after some bytes, as a full disk would."""

    def savefig(self, fname, **_):
        Path(fname).write_bytes(b"\x89PNG half")
        raise OSError(28, "No space left on device")


def test_a_figure_that_fails_leaves_no_file(tmp_path: Path):
    with pytest.raises(OSError, match="No space left"):
        write_png({"broken": Broken()}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        write_png({"ledger": ledger({"x": a_run()})}, tmp_path / "nowhere")

"""The slot timeline, by what is drawn: which bars, from when to when, in which slot."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from report_examples import MS, OUTPUTS, static_stays, stays

from reports.figures import stay_parts, timeline
from reports.figures.stay_parts import HELD, LOST, PREEMPTED, WORKING, StayPart
from reports.figures.timeline import EMPTY, slot_timeline


def bars(axes: Axes, part: StayPart) -> list[tuple[float, float, float]]:
    """(slot, from, to) of every bar of a part, times in the axis' unit."""
    found = []
    for collection in axes.collections:
        assert isinstance(collection, PolyCollection)
        if collection.get_gid() == part.label:
            for path in collection.get_paths():
                low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found.append((float(low[1] + high[1]) / 2, round(float(low[0]), 9), round(float(high[0]), 9)))
    return sorted(found)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_static_batching_works_to_each_own_output_and_holds_to_the_longest():
    figure = slot_timeline({"static": (static_stays(), 8)}, {"static": 172 / 960})
    (axes,) = figure.axes
    assert axes.get_xlabel() == "time, ms"
    assert bars(axes, WORKING) == [(slot, 0, n) for slot, n in enumerate(OUTPUTS.values())]
    assert bars(axes, HELD) == [(slot, n, 120) for slot, n in enumerate(OUTPUTS.values()) if n < 120]
    assert "occupancy 17.9%" in words(figure)
    assert legend(figure) == [WORKING.label, HELD.label]


def test_what_is_bought_and_not_used_shows_its_track():
    figure = slot_timeline({"one of two": (stays([(1, "a", "finished", 0, 4 * MS, 4 * MS)]), 2)})
    assert bars(figure.axes[0], EMPTY) == [(0, 0, 4), (1, 0, 4)]
    assert bars(figure.axes[0], WORKING) == [(1, 0, 4)]
    assert bars(figure.axes[0], HELD) == []
    assert legend(figure) == [WORKING.label, EMPTY.label]


def test_ids_stand_where_there_is_room():
    texts = words(slot_timeline({"static": (static_stays(), 8)}))
    assert set("abcdefgh") <= set(texts)
    long = static_stays().assign(id=lambda frame: "request-" + frame["id"])
    texts = words(slot_timeline({"static": (long, 8)}))
    assert "request-d" in texts
    assert "request-a" not in texts


def test_working_is_solid_and_held_is_hatched_in_another_colour():
    (axes,) = slot_timeline({"static": (static_stays(), 8)}).axes
    by_part = {collection.get_gid(): collection for collection in axes.collections}
    assert by_part[HELD.label].get_hatch()
    assert not by_part[WORKING.label].get_hatch()
    assert not np.array_equal(by_part[HELD.label].get_facecolor(), by_part[WORKING.label].get_facecolor())


def test_work_that_came_to_nothing_looks_different():
    frame = stays(
        [
            (0, "a", "preempted", 0, 2 * MS, 2 * MS),
            (0, "b", "cancelled", 2 * MS, 3 * MS, 3 * MS),
            (0, "a", "finished", 3 * MS, 9 * MS, 9 * MS),
        ]
    )
    (axes,) = slot_timeline({"fcfs": (frame, 1)}).axes
    assert bars(axes, PREEMPTED) == [(0, 0, 2)]
    assert bars(axes, LOST) == [(0, 2, 3)]
    assert bars(axes, WORKING) == [(0, 3, 9)]


def test_a_stay_that_has_not_ended_lasts_to_the_end():
    frame = stays([(0, "a", "running", 0, None, None), (1, "b", "finished", 0, 5 * MS, 7 * MS)])
    (axes,) = slot_timeline({"cut": (frame, 2)}).axes
    assert bars(axes, WORKING) == [(0, 0, 7), (1, 0, 5)]


def test_panels_share_one_time_axis_that_starts_at_the_first_admission():
    early = stays([(0, "a", "finished", 1000 * MS, 3000 * MS, 3000 * MS)])
    late = stays([(0, "a", "finished", 2000 * MS, 5000 * MS, 5000 * MS)])
    figure = slot_timeline({"early": (early, 1), "late": (late, 1)})
    above, below = figure.axes
    assert bars(above, WORKING) == [(0, 0, 2)]
    assert bars(below, WORKING) == [(0, 1, 4)]
    assert above.get_xlim() == below.get_xlim()
    assert below.get_xlabel() == "time, s"


def a_crowd(slots: int, rounds: int) -> pd.DataFrame:
    """Every slot is taken by a request of one second, again and again."""
    second = 1000 * MS
    turns = [(turn, slot) for turn in range(rounds) for slot in range(slots)]
    return stays([(s, f"{t}.{s}", "finished", t * second, (t + 1) * second, (t + 1) * second) for t, s in turns])


def test_a_crowd_has_no_ids_and_neighbours_of_two_shades():
    figure = slot_timeline({"crowd": (a_crowd(4, 200), 4)})
    (axes,) = figure.axes
    assert len(bars(axes, WORKING)) == 800
    assert words(figure) == ["crowd", ""]
    (working,) = (c for c in axes.collections if c.get_gid() == WORKING.label)
    assert len(np.unique(working.get_facecolor(), axis=0)) == 2
    assert axes.get_xlabel() == "time, s; neighbouring stays differ in shade"


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timeline, "MOST_STAYS", 20)
    monkeypatch.setattr(stay_parts, "MOST_SLOTS", 4)
    figure = slot_timeline({"long": (a_crowd(8, 10), 8), "short": (a_crowd(1, 10), 1)})
    above, below = figure.axes
    assert len(bars(above, WORKING)) == 20
    assert len(bars(below, WORKING)) == 5
    assert "first 4 of 8 slots, first 5.00 s of 10.0 s, 20 of 80 stays drawn" in words(figure)
    assert "first 5.00 s of 10.0 s, 5 of 10 stays drawn" in words(figure)


def test_names_are_taken_literally_and_nothing_global_changes():
    before = dict(mpl.rcParams)
    frame = static_stays().assign(id="$x_")
    figure = slot_timeline({"_$a^{": (frame, 8)})
    figure.canvas.draw()
    assert "_$a^{" in words(figure)
    assert "$x_" in words(figure)
    assert not any(text.get_parse_math() for axes in figure.axes for text in axes.texts)
    assert dict(mpl.rcParams) == before


def test_a_run_without_stays_is_an_empty_panel():
    figure = slot_timeline({"nobody": (static_stays().iloc[:0], 8)})
    figure.canvas.draw()
    assert bars(figure.axes[0], WORKING) == []


def test_no_panels_and_slots_that_do_not_exist_are_errors():
    with pytest.raises(ValueError, match="no panels"):
        slot_timeline({})
    with pytest.raises(ValueError, match="static: a stay in slot 7 of 4 slots"):
        slot_timeline({"static": (static_stays(), 4)})


@pytest.mark.parametrize(
    ("slots", "drawn", "said"),
    [
        (1024, 3, "3 of 1,024 slots, no other was in use"),
        (17, 3, "3 of 17 slots, no other was in use"),
        (16, 16, ""),
        (5, 5, ""),
    ],
)
def test_of_a_wide_and_mostly_empty_engine_the_slots_in_use_are_drawn(slots: int, drawn: int, said: str):
    figure = slot_timeline({"fcfs": (a_crowd(3, 200), slots)})  # dense: without ids
    bottom, _ = figure.axes[0].get_ylim()
    assert bottom == pytest.approx(drawn - 0.4)
    assert words(figure)[1] == said


def test_rows_are_all_drawn_where_more_than_half_were_in_use():
    figure = slot_timeline({"fcfs": (a_crowd(300, 1), 400)})
    assert figure.axes[0].get_ylim()[0] == pytest.approx(255.6)
    assert words(figure)[1] == "first 256 of 400 slots, 256 of 300 stays drawn"

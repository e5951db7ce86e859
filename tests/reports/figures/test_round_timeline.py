"""Timeline of one round."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pytest import approx

from reports.figures import round_timeline as timeline
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import figure_style as style


def spans_of(panel):
    """Start and length of every bar."""
    corners = [path.vertices[:, 0] for each in panel.collections for path in each.get_paths()]
    return [(x.min(), np.ptp(x)) for x in corners]


def test_timeline_is_the_middle_round_since_its_start(drawn, two_schemes):
    joint, other = drawn(timeline.round_timeline, two_schemes).axes
    bars = spans_of(joint)  # download, train, upload of devices 0 and 1
    assert [x for x, _ in bars] == approx([0, 0, 0, 0, 3.125, 6.25])
    assert [width for _, width in bars] == approx([0, 0, 3.125, 6.25, 9.375, 18.75])
    assert max(x + width for x, width in spans_of(other)) == approx(40)
    assert (
        len([line for line in other.lines if line.get_marker() == "x"]) == 2
    )  # both devices are late


def test_below_a_cloud_every_round_of_an_edge_has_its_marks(drawn, tmp_path, write_run):
    """Of two rounds of the edge within the third of the cloud, the first was late."""
    schemes = load_schemes([write_run(tmp_path / "run", latency_s=(0.02,) * 4)])
    run = schemes[0].first
    for name in ("device_rounds", "spans"):
        table = getattr(run, name)
        first = table.assign(edge_round=0)
        if name == "device_rounds":
            first["status"] = "late"
        else:  # twice as fast
            start_s = 0.02 * table["round"]
            first["end_s"] = start_s + (table["end_s"] - start_s) / 2
        object.__setattr__(run, name, pd.concat([first, table.assign(edge_round=1)]))
    (panel,) = drawn(timeline.round_timeline, schemes).axes
    marks = [line.get_xydata()[0].tolist() for line in panel.lines if line.get_marker() == "x"]
    assert marks == [approx([5.0, 0]), approx([10.0, 1])]  # devices 0 and 1 take 10 and 20 ms alone
    rows = {(row[2], row[3]) for row in timeline.timeline_table(schemes).rows}
    assert rows == {(0, "late"), (0, "arrived"), (1, "late"), (1, "arrived")}


def test_the_table_counts_rounds_from_one(two_schemes):
    table = timeline.timeline_table(two_schemes)
    assert {row[1] for row in table.rows} == {3} and table.caption.startswith("Round 3 of")


def test_a_long_round_gets_its_own_axis(tmp_path, write_run, two_schemes):
    assert timeline.shares_axis(two_schemes)
    slow = load_schemes(
        [write_run(tmp_path / "slow", scheme="slow", method="own", latency_s=(0.1,) * 4)]
    )
    assert not timeline.shares_axis(two_schemes + slow)


@pytest.mark.slow
def test_in_grey_a_dark_bar_does_not_swallow_the_threshold(tmp_path, write_run):
    schemes = load_schemes([write_run(tmp_path / "late", latency_s=(0.05,) * 4)])
    with style.styled(style.IEEE):
        figure = timeline.round_timeline(schemes, style.IEEE)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    grey = np.asarray(canvas.buffer_rgba())[..., :3].mean(axis=2)
    x, y = (
        figure.axes[0].transData.transform([(25.0, 1.0), (40.0, 1.0)]).astype(int).T
    )  # on the line, beside it
    rows = slice(len(grey) - y[0] - 6, len(grey) - y[0] + 6)  # inside the upload of device 1
    assert np.ptp(grey[rows, x[1] - 2 : x[1] + 3]) < 5
    assert np.ptp(grey[rows, x[0] - 2 : x[0] + 3]) > 100


def test_of_many_devices_twenty_are_shown_with_the_last(tmp_path, write_run):
    run = load_schemes([write_run(tmp_path / "many")])[0].first
    wide = pd.concat(
        [run.device_rounds.assign(device=run.device_rounds["device"] + 2 * i) for i in range(30)]
    )
    object.__setattr__(run, "device_rounds", wide)
    late = run.spans.assign(device=37, end_s=run.spans["end_s"] + 1)
    object.__setattr__(run, "spans", pd.concat([run.spans, late]))
    shown = timeline.shown_devices(timeline.logged_round(run, 2))
    assert len(shown) <= timeline.MOST_DEVICES and {0, 37, 59} <= set(shown)


def test_of_many_devices_those_that_were_handed_over_are_shown(tmp_path, write_run):
    run = load_schemes([write_run(tmp_path / "many")])[0].first
    wide = pd.concat(
        [run.device_rounds.assign(device=run.device_rounds["device"] + 2 * i) for i in range(30)]
    )
    object.__setattr__(run, "device_rounds", wide)
    first = run.spans[run.spans["round"] == 2].head(1)
    for moved in ((11, 37), range(60)):
        spans = [run.spans, *(first.assign(device=k, phase="handover") for k in moved)]
        object.__setattr__(run, "spans", pd.concat(spans))
        shown = timeline.shown_devices(timeline.logged_round(run, 2))
        assert len(shown) <= timeline.MOST_DEVICES
        assert set(list(moved)[: timeline.MOST_HANDED_OVER]) | {0, 59} <= set(shown)


def test_the_legend_of_a_timeline_in_a_column_is_not_cut_off():
    names = ["warm-up", "train", "upload", "handover", "threshold 200 ms", "late", "failed", "left"]
    with style.styled(style.IEEE):
        figure = Figure(figsize=(style.IEEE.width_in, 3))
        timeline.name_marks(figure, [Patch(label=name) for name in names], 4)
    (legend,) = figure.legends
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert [text.get_text() for text in legend.get_texts()] == names

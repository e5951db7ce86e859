"""Every figure in both styles: no text on another one or cut off, a unit on every axis."""

import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from edgesim.results.run_search import find_runs
from reports.figure_catalog import report_figures
from reports.figure_files import lay_out
from reports.run_data.scheme_grouping import load_schemes
from reports.styling.figure_style import STYLES, styled

PLAIN = {  # have no unit
    *("global round", "device", "label", "test loss", "final test loss", "training samples"),
    *("mean pruning ratio ρ", "pruning ratio ρ"),
}


UNIT = re.compile(r"\((%|s|ms|MHz|GHz|Mbit|Mbit/s|J|m|points per (MHz|ms))[),:]|\((s|ms)\)")


def legible(figure: Figure) -> list[str]:
    """What is wrong with a figure's texts."""
    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    width, height = canvas.get_width_height()
    unseen = {id(label) for axes in figure.axes for label in _unseen(axes)}
    texts = [
        t
        for t in figure.findobj(Text)
        if t.get_visible() and t.get_text().strip() and id(t) not in unseen
    ]
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts]
    found = [
        f"cut off: {text}"
        for text, b in boxes
        if b.x0 < -1 or b.y0 < -1 or b.x1 > width + 1 or b.y1 > height + 1
    ]
    for i, (text, b) in enumerate(boxes):
        for other, c in boxes[i + 1 :]:
            if min(b.x1, c.x1) - max(b.x0, c.x0) > 0 and min(b.y1, c.y1) - max(b.y0, c.y0) > 1:
                found.append(f"{text} on {other}")
    return found + [
        f"no unit: {title}"
        for title in _titles(figure)
        if title not in PLAIN and not UNIT.search(title)
    ]


def _unseen(axes):
    """Texts that are not drawn: ticks beyond the limits, the axes of a hidden panel."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        drawn = axes.get_visible() and axes.axison
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not drawn or not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)
        if not drawn:
            yield from (axis.label, axis.offsetText)


def _titles(figure: Figure):
    """Of every axis with numbers on it."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axes.get_visible() and axes.axison and _numbered(axis):
                yield axis.label.get_text()


def _numbered(axis) -> bool:
    """Has it numbers of its own? A panel beside another one may share those on the left."""
    return any(
        label.get_visible() and re.fullmatch(r"[−\d.]+", label.get_text())
        for label in axis.get_ticklabels()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", STYLES)
def test_figures_of_runs_and_of_a_sweep_are_legible(two_runs, swept_folder, name):
    style, wrong = STYLES[name], {}
    with styled(style):
        for folder in (two_runs, swept_folder):
            for plate in report_figures(load_schemes(find_runs([folder]).finished))[0]:
                figure = plate.draw(style)
                if figure is not None:
                    lay_out(figure)
                    if problems := legible(figure):
                        wrong[folder.name, plate.name] = problems
    assert wrong == {}


def test_what_is_not_legible_is_seen():
    with styled(STYLES["ieee"]):
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([0.0, 1.0])
        axes.set_xlabel("time")
        figure.text(0.5, 0.5, "here")
        figure.text(0.52, 0.52, "too")
        figure.text(0.95, 0.8, "far away")
    found = legible(figure)
    assert {"here on too", "cut off: far away", "no unit: time"} <= set(found), found

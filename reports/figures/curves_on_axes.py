"""Curves on axes of the user's own, in whatever style matplotlib is set to."""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.legend import Legend

from edgesim.errors import ResultsError
from reports.figures.learning_curves import ABSCISSAS, Ordinate, draw_curves
from reports.run_data.given_runs import GivenRuns, schemes_of
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.round_curves import any_curve, round_curve
from reports.styling.colours_and_markers import DASHES, SeriesStyle
from reports.styling.figure_style import SCREEN

MOST_INSIDE = 8  # lines of text of a legend within the axes
EDGE_IN = 0.3  # above and below one beside them


def curves_on_axes(runs: GivenRuns, ax: Axes | None, x: str, shown: Ordinate) -> Axes:
    """One line per scheme in the looks of matplotlib's property cycle.

    Args:
        runs: as `reports.run_data.given_runs.schemes_of` takes them, or its schemes.
        ax: where to draw; None: new axes.
        x: a name in `ABSCISSAS`.
        shown: what the lines show.

    Raises:
        ResultsError: ax is no axes, nothing finished there, an unknown x, or no run has a finite
            value of what is shown.
    """
    if not isinstance(ax, Axes | None):
        kind = type(ax).__name__
        raise ResultsError(f"ax is {kind}; give one matplotlib axes, such as axes[0] of several.")
    if x not in ABSCISSAS:
        raise ResultsError(f'The axis "{x}" is unknown; there are {", ".join(ABSCISSAS)}.')
    is_grouped = isinstance(runs, list) and runs and all(isinstance(each, Scheme) for each in runs)
    schemes = runs if is_grouped else schemes_of(runs)
    if not any_curve(schemes, shown.column):
        kind = "finite " * any(round_curve(scheme, shown.column) for scheme in schemes)
        what = f"{kind}{shown.title}"
        raise ResultsError(f"These runs have no {what}, so that there is nothing to draw.")
    axes = ax if ax is not None else _new_axes()
    draw_curves(axes, schemes, _cycled(schemes, axes), shown, x, SCREEN)
    return with_legend(axes, is_new=ax is None)


def with_legend(axes: Axes, is_new: bool) -> Axes:
    """The axes with the names of their lines, where there are several.

    Args:
        axes: with all of their lines.
        is_new: the figure is theirs alone, and may grow for names that would cover the curves.
    """
    names = axes.get_legend_handles_labels()[1]
    if len(names) > 1:
        is_beside = is_new and sum(name.count("\n") + 1 for name in names) > MOST_INSIDE
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        legend = axes.legend(**place if is_beside else {})
        for text in legend.get_texts():
            text.set_parse_math(False)  # as a name may be any text, half of a formula too
        if is_beside:
            _grow(axes, legend)
    return axes


def _grow(axes: Axes, legend: Legend) -> None:
    """Make the figure of new axes wider and as high as a legend beside them asks for."""
    figure = axes.figure.get_figure(root=True)
    extent = legend.get_window_extent()
    width_in, height_in = matplotlib.rcParams["figure.figsize"]
    least_in = extent.height / figure.dpi + EDGE_IN
    figure.set_size_inches(width_in + extent.width / figure.dpi, max(height_in, least_in))


def _new_axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _cycled(schemes: list[Scheme], axes: Axes) -> dict[str, SeriesStyle]:
    """Label -> style, from matplotlib's property cycle: that of `style`, or the user's own.

    Colours that the axes already have come last; one that comes again has other dashes.
    """
    drawn = {line.get_color() for line in axes.lines}
    every = list(matplotlib.rcParams["axes.prop_cycle"])
    every.sort(key=lambda one: one.get("color") in drawn)
    looks = {}
    for i, scheme in enumerate(schemes):
        again, place = divmod(i, len(every))
        one = every[place]
        colour, marker, dashes = one.get("color", "C0"), one.get("marker", ""), one.get("linestyle")
        own = [dashes or "-"]
        own += [each for each in DASHES if each not in own]
        looks[scheme.label] = SeriesStyle(colour, marker, own[again % len(own)])
    return looks

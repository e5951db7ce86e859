"""Figures of runs on axes of your own, in the house style: ``edgesim.plot``.

>>> import edgesim                                                          # doctest: +SKIP
>>> with edgesim.plot.style("ieee"):                                        # doctest: +SKIP
...     ax = edgesim.plot.accuracy({"Proposed": "runs/demo/joint-1f2e-s0"}, x="rounds")
...     ax.figure.savefig("accuracy.pdf")

Wherever ``runs`` is asked for, give a folder (of a run, of runs, of a sweep), a run that
`edgesim.simulate` returned, a list of these, or a dict from display names to these; for a report,
folders alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgesim.errors import ResultsError
from reports.figure_catalog import report_figures
from reports.figure_files import file_style, lay_out
from reports.figures.curves_on_axes import curves_on_axes, with_legend
from reports.figures.learning_curves import ACCURACY, LATENCY, LOSS, own_metric
from reports.report_options import file_beside, options_from, read_options, said_where_written
from reports.run_data.given_runs import GivenRuns, schemes_of
from reports.run_data.scheme_selection import named_schemes, sliced_schemes
from reports.run_data.statistics.metrics import metrics_in, own_metrics
from reports.run_data.statistics.round_latencies import thresholds_s
from reports.styling.axes_and_legends import threshold_label
from reports.styling.colours_and_markers import series_cycle
from reports.styling.figure_style import STYLES, THRESHOLD_LINE, settings, styled
from reports.styling.panel_arrangement import letter_panels

__all__ = ["accuracy", "figure", "latency", "loss", "metric", "report", "style"]


def style(name: str = "screen") -> AbstractContextManager[object]:
    """Set matplotlib's defaults to the house style, for good or within a ``with`` block.

    Args:
        name: "screen" (7.4 in wide, colours that colour-blind readers can tell apart) or "ieee"
            (3.5 in wide, 8 pt, readable in grey).

    Returns:
        A context whose end restores the settings from before the call, as `pyplot.ion` does.

    Raises:
        ResultsError: an unknown style.
    """
    if name not in STYLES:
        raise ResultsError(f'The style "{name}" is unknown; there are {" and ".join(STYLES)}.')
    chosen, context = STYLES[name], ExitStack()
    # not rc_context: dropped, as after a plain statement, that restores the settings at once
    before = dict(matplotlib.rcParams.copy())
    del before["backend"]  # of a figure window that may be open by then
    context.callback(matplotlib.rcParams.update, before)
    size = {"figure.figsize": (min(chosen.width_in, 5.4), 3.2 if chosen.wide else 2.4)}
    looks = series_cycle(chosen.grey)
    keys = {"color": "colour", "marker": "marker", "linestyle": "dashes"}
    every = {key: [getattr(look, field) for look in looks] for key, field in keys.items()}
    matplotlib.rcParams.update(settings(chosen) | size | {"axes.prop_cycle": cycler(**every)})
    return context


def report(
    runs: str | Path | Sequence[str | Path],
    options: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
) -> Path:
    """Write a report's page, figures and tables.

    Args:
        runs: a folder of runs, of a run or of a sweep; or several.
        options: the keys of a report.yaml, such as ``{"figures": ["accuracy"], "style": "ieee"}``;
            None: those of the report.yaml in the first folder, if there is one.
        out: folder of the report; None: ``report`` in the folder, or beside several.

    Returns:
        The path of index.html.

    Raises:
        ScenarioError: an option is wrong.
        ResultsError: no folder, nothing finished there, or an option names what is not there.
    """
    from reports.html_page import default_folder, write_report

    given = list(runs) if isinstance(runs, Iterable) and not isinstance(runs, str) else [runs]
    if not given:
        raise ResultsError("No runs are given; give a folder, or many.")
    for one in given:
        if not isinstance(one, str | PathLike):
            name = type(one).__name__
            raise ResultsError(f"{name} is no folder; give that of a run, such as run.folder.")
    dirs = [Path(one) for one in given]
    folder = Path(out) if out is not None else default_folder(dirs)
    metrics = partial(metrics_in, dirs)
    if options is not None:
        return write_report(dirs, folder, options_from(options, metrics))
    file = file_beside(dirs[0])
    with said_where_written(file):
        return write_report(dirs, folder, read_options(file, metrics=metrics))


def figure(runs: GivenRuns, name: str, options: Mapping[str, Any] | None = None) -> Figure:
    """One figure of a report, laid out.

    Args:
        runs: a folder (of a run, of runs, of a sweep), a run of `edgesim.simulate`, or several.
        name: as in docs/use/reports.md, such as "pareto" or "accuracy-by-bandwidth".
        options: the keys of a report.yaml.

    Raises:
        ScenarioError: an option is wrong, or no report has a figure of this name.
        ResultsError: nothing finished there, these results lack the figure, or nothing to draw.
    """
    every = schemes_of(runs)
    chosen = options_from(options or {}, partial(own_metrics, every), figures=[name])
    schemes = named_schemes(sliced_schemes(every, chosen.slice), chosen.schemes)
    [found], _ = report_figures(schemes, chosen)
    with styled(file_style(chosen)):
        drawn = found.draw(file_style(chosen))
        if chosen.panels == "lettered":
            letter_panels(drawn)
        lay_out(drawn)
    return drawn


def accuracy(runs: GivenRuns, ax: Axes | None = None, x: str = "time") -> Axes:
    """Test accuracy, mean over devices and seeds, one line per scheme.

    Args:
        runs: a folder (of a run, of runs, of a sweep), a run of `edgesim.simulate`, or several.
        ax: where to draw; None: new axes.
        x: "time" (simulated s), "rounds", "bits" (up and down, Mbit) or "energy" (J).

    Returns:
        The axes, with titles and a label for each line.

    Raises:
        ResultsError: nothing finished there, no run has an accuracy, or an unknown x.
    """
    return curves_on_axes(runs, ax, x, ACCURACY)


def loss(runs: GivenRuns, ax: Axes | None = None, x: str = "time") -> Axes:
    """Test loss, mean over devices and seeds, one line per scheme.

    Args:
        runs: a folder (of a run, of runs, of a sweep), a run of `edgesim.simulate`, or several.
        ax: where to draw; None: new axes.
        x: "time" (simulated s), "rounds", "bits" (up and down, Mbit) or "energy" (J).

    Returns:
        The axes, with titles and a label for each line.

    Raises:
        ResultsError: nothing finished there, no run has a finite loss, or an unknown x.
    """
    return curves_on_axes(runs, ax, x, LOSS)


def metric(runs: GivenRuns, name: str, ax: Axes | None = None, x: str = "time") -> Axes:
    """A metric of the scenario's own (`learning.metric`), mean over devices and seeds.

    Args:
        runs: a folder (of a run, of runs, of a sweep), a run of `edgesim.simulate`, or several.
        name: its column in the table of rounds, such as "top3".
        ax: where to draw; None: new axes.
        x: "time" (simulated s), "rounds", "bits" (up and down, Mbit) or "energy" (J).

    Returns:
        The axes, with titles and a label for each line; schemes without the metric have none.

    Raises:
        ResultsError: nothing finished there, no run has a finite value of it, or an unknown x.
    """
    schemes = schemes_of(runs)
    known = own_metrics(schemes)
    if name not in known:
        there = ", ".join(known) or "no learning.metric"
        raise ResultsError(f'The metric "{name}" is unknown; these runs have {there}.')
    return curves_on_axes(schemes, ax, x, own_metric(name))


def latency(runs: GivenRuns, ax: Axes | None = None, x: str = "rounds") -> Axes:
    """Latency per round (ms), one line per scheme, and, dashed, the thresholds.

    Args:
        runs: a folder (of a run, of runs, of a sweep), a run of `edgesim.simulate`, or several.
        ax: where to draw; None: new axes.
        x: "time" (simulated s), "rounds", "bits" (up and down, Mbit) or "energy" (J).

    Returns:
        The axes, with titles and a label for each line.

    Raises:
        ResultsError: nothing finished there, or an unknown x.
    """
    schemes = schemes_of(runs)
    axes = curves_on_axes(schemes, ax, x, LATENCY)
    for limit_s in thresholds_s(schemes):
        label = threshold_label(limit_s)
        if label not in axes.get_legend_handles_labels()[1]:  # of an earlier call
            axes.axhline(limit_s * 1e3, **THRESHOLD_LINE, label=label)
    axes.set_ylim(bottom=0, auto=None)  # the next call may need more room above
    return with_legend(axes, is_new=ax is None)

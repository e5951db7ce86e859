"""Figures of accuracy, loss and the metrics of the user's own."""

from __future__ import annotations

from functools import partial

from reports.catalog.report_figure import LEARNING, ReportFigure, seeds_text
from reports.figures import learning_curves
from reports.option_readers import metric_figure
from reports.report_options import ReportOptions
from reports.run_data.job_outcomes import any_overlaps
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import own_metrics
from reports.run_data.statistics.round_curves import any_curve, round_curve
from reports.text.number_text import list_text

AXIS_NAMES = {"time": "simulated time", "rounds": "rounds", "bits": "bits", "energy": "joules"}


def learning_figures(
    schemes: list[Scheme], few: list[Scheme], shown: str, options: ReportOptions
) -> list[ReportFigure]:
    """Curves of a few schemes; the tables have all.

    Rounds of clocks whose jobs overlap are versions of the model, of which each has its own
    number: these are compared by seconds and joules.
    """
    against = options.x or ("time", "energy" if any_overlaps(few) else "rounds")
    over = " and ".join(f"over {AXIS_NAMES[name]}" for name in against)
    return [
        ReportFigure(
            LEARNING,
            "accuracy",
            f"Accuracy {over}",
            _accuracy_caption(few, options) + _no_curve_text(few, "accuracy") + shown,
            partial(learning_curves.learning_curves, few, learning_curves.ACCURACY, against),
            partial(learning_curves.curve_table, schemes, "accuracy", "accuracy"),
            partial(any_curve, few, "accuracy"),
        ),
        ReportFigure(
            LEARNING,
            "spending",
            "Accuracy over bits and over joules",
            "The same accuracy against what it took since the first round: bits of all devices, "
            "up and down, and joules of all devices. A curve that lies further left reaches its "
            f"accuracy for less.{_no_curve_text(few, 'accuracy')}{shown}",
            partial(
                learning_curves.learning_curves, few, learning_curves.ACCURACY, ("bits", "energy")
            ),
            partial(learning_curves.curve_table, schemes, "spending", "accuracy"),
            partial(any_curve, few, "accuracy"),
        ),
        ReportFigure(
            LEARNING,
            "loss",
            f"Loss {over}",
            f"Test loss, mean over devices{seeds_text(few)}.{_no_curve_text(few, 'loss')}{shown}",
            partial(learning_curves.learning_curves, few, learning_curves.LOSS, against),
            partial(learning_curves.curve_table, schemes, "loss", "loss"),
            partial(any_curve, few, "loss"),
        ),
        *(
            ReportFigure(
                LEARNING,
                name := metric_figure(column),
                f"Metric {column} {over}",
                f"The metric {column} of the scenario, mean over devices{seeds_text(few)}."
                f"{_no_curve_text(few, column)}{shown}",
                partial(
                    learning_curves.learning_curves,
                    few,
                    learning_curves.own_metric(column),
                    against,
                ),
                partial(learning_curves.curve_table, schemes, name, column, column),
                partial(any_curve, few, column),
            )
            for column in own_metrics(schemes)
        ),
    ]


def _accuracy_caption(schemes: list[Scheme], options: ReportOptions) -> str:
    text = "Test accuracy of every device's own model on its own test data, mean over devices"
    text += f" and seeds{seeds_text(schemes)}." if seeds_text(schemes) else "."
    text += " Bars: one standard deviation over devices." if options.bars == "devices" else ""
    return text


def _no_curve_text(schemes: list[Scheme], column: str) -> str:
    """Which schemes have no curve, as one whose seed ended before it was evaluated."""
    found = [each.label for each in schemes if round_curve(each, column) is None]
    if not found:
        return ""
    return f" Not evaluated in a round of all seeds, so without a curve: {list_text(found)}."

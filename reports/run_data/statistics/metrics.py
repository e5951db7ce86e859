"""The numbers of a run that sweeps show: accuracy, loss, ratio, latency, energy, own metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgesim.records.run_tables.table_columns import SCHEMAS
from edgesim.results.finished_run import FinishedRun
from edgesim.results.run_search import find_runs
from edgesim.tables.table_reading import read_table
from reports.axis_units import USUAL_UNITS, AxisUnits
from reports.option_readers import metric_figure
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.run_totals import final, rho_mean, total

if TYPE_CHECKING:
    import pandas as pd

RHO = "\N{GREEK SMALL LETTER RHO}"


@dataclass(frozen=True)
class Metric:
    """One number of a run.

    column: its name in a CSV, with the unit.     title: for an axis, without a unit.
    unit: as `AxisUnits.axis` takes it.     of: run -> value in SI; nan where it has none.
    best: "max" or "min" where one is better.
    """

    name: str
    column: str
    title: str
    unit: str
    of: Callable[[FinishedRun], float]
    best: str = ""

    @property
    def heading(self) -> str:
        """The title of an axis as it begins a sentence."""
        title = self.axis()[1]
        return f"{title[0].upper()}{title[1:]}"

    @property
    def scale(self) -> float:
        """From SI to the usual unit."""
        return self.axis()[0]

    def axis(self, units: AxisUnits = USUAL_UNITS) -> tuple[float, str]:
        """What its values are multiplied by, and the title of their axis."""
        return units.axis(self.title, self.unit)


def _final_accuracy(run: FinishedRun) -> float:
    return final(run, "accuracy")


def _final_loss(run: FinishedRun) -> float:
    return final(run, "loss")


def _mean_latency_s(run: FinishedRun) -> float:
    return float(run.rounds["latency_s"].mean())


def _energy_per_round_j(run: FinishedRun) -> float:
    return total(run, "energy_j") / len(run.rounds)


ACCURACY = Metric("accuracy", "accuracy", "final test accuracy", "%", _final_accuracy, "max")
LOSS = Metric("loss", "loss", "final test loss", "", _final_loss, "min")
PRUNING = Metric("rho", "rho", f"mean pruning ratio {RHO}", "", rho_mean)
LATENCY = Metric(
    "latency", "latency_s", "mean latency per round", "latency", _mean_latency_s, "min"
)
ENERGY = Metric("energy", "energy_j", "energy per round", "energy", _energy_per_round_j, "min")
METRICS = (ACCURACY, LOSS, PRUNING, LATENCY, ENERGY)


def all_metrics(schemes: Sequence[Scheme]) -> tuple[Metric, ...]:
    """`METRICS`, and the last values of the `own_metrics`; which is better nobody knows."""
    own = (
        Metric(metric_figure(column), column, f"final {column}", "", partial(final, column=column))
        for column in own_metrics(schemes)
    )
    return (*METRICS, *own)


def own_metrics(schemes: Sequence[Scheme]) -> list[str]:
    """The columns of `learning.metric` that the schemes' tables of rounds have, each once."""
    return _beyond_the_schema(run.rounds for scheme in schemes for run in scheme.runs)


def metrics_in(folders: Sequence[Path]) -> list[str]:
    """`own_metrics` of the finished runs in some folders."""
    return _beyond_the_schema(read_table(run, "rounds") for run in find_runs(folders).finished)


def _beyond_the_schema(tables: Iterable[pd.DataFrame]) -> list[str]:
    columns = dict.fromkeys(name for table in tables for name in table)
    return [name for name in columns if name not in SCHEMAS["rounds"]]

"""What a key of a ``report.yaml`` may hold: names of figures, display names, values of keys."""

from __future__ import annotations

from typing import Any

from edgesim.results.flat_scenario import flat_text
from edgesim.scenario.fields import Word
from edgesim.scenario.section import Reader, ValueRefusedError, refuse
from edgesim.scenario.units import UnitError, parse
from reports.axis_units import SI_UNITS, USUAL_UNITS, AxisUnits

METRICS = ("accuracy", "loss", "rho", "latency", "energy")  # METRIC-by-KEY is a figure of a sweep
FIGURES = (
    *("accuracy-map", "latency-map", "accuracy", "spending", "loss"),
    *("latency", "cdf", "decomposition", "timeline", "staleness", "participation"),
    *("pareto", "to-target", "costs", "devices", "worth", "sinr", "partition", "topology"),
)


def metric_figure(column: str) -> str:
    """The name of the figure of a metric of the user's own, whose column this is."""
    return f"{column}_metric" if column in (*FIGURES, *METRICS) else column


def shown_by(figure: str) -> tuple[str, tuple[str, ...]]:
    """What a figure of this name shows, METRIC of METRIC-by-KEY, and the names there are for it."""
    shown, of_sweep, _ = figure.partition("-by-")
    return shown, METRICS if of_sweep else FIGURES


class Words(Reader[tuple[str, ...]]):
    """A list of words, also written as one text with commas.

    Args:
        options: the only ones allowed; empty: any.
    """

    def __init__(self, *options: str):
        self.options = options

    def read(self, given: object) -> tuple[str, ...]:
        words = given.split(",") if isinstance(given, str) else given
        if not isinstance(words, list | tuple) or not words:
            raise refuse(given, f"; write {self.allowed}")
        read = tuple(Word().read(str(word).strip()) for word in words)
        for word in read:
            if self.options and word not in self.options:
                raise refuse(word, f"; write {self.allowed}")
            if read.count(word) > 1:
                raise refuse(given, f" with {word} twice; write each of them once")
        return read

    @property
    def allowed(self) -> str:
        return f"a list of {', '.join(self.options)}" if self.options else "a list of words"


class FigureNames(Words):
    """Names of figures; which swept keys and metrics of the user's own there are the runs say.

    A metric has a name of Python, so that such names are left to `report_options`.
    """

    allowed = "a list of figures, such as [accuracy, latency]"

    def read(self, given: object) -> tuple[str, ...]:
        names = super().read(given)
        for name in names:
            metric, known = shown_by(name)
            if not metric.isidentifier():
                Word(known).read(metric)
        return names


class DisplayNames(Reader[dict[str, str]]):
    """Labels in order, or a mapping from labels to display names, which may be any text."""

    allowed = "a list of labels, or a mapping from labels to display names"

    def read(self, given: object) -> dict[str, str]:
        if isinstance(given, str | list) and given:
            return {label: label for label in Words().read(given)}
        if not isinstance(given, dict) or not given:
            raise refuse(given, f"; write {self.allowed}")
        for name in given.values():
            if isinstance(name, bool | dict | list):
                raise refuse(name, "; write a display name, true and false in quotes")
        names = {str(label): str(label if name is None else name) for label, name in given.items()}
        for name in names.values():
            if not name.strip() or list(names.values()).count(name) > 1:
                problem = "shared by several labels" if name.strip() else "without a character"
                raise refuse(given, f" with a display name {problem}; write one for each label")
        return names


class KeyValues(Reader[dict[str, str]]):
    """A mapping from keys of the scenario to a value each."""

    allowed = "a mapping from swept keys to a value or none, such as {network.bandwidth: 10 MHz}"

    def read(self, given: object) -> dict[str, str]:
        if not isinstance(given, dict) or not given:
            raise refuse(given, f"; write {self.allowed}")
        return {name: flat_text(value) for name, value in _flat(given, "").items()}


def _flat(given: dict[Any, Any], prefix: str) -> dict[str, Any]:
    """Mappings in mappings as dotted keys."""
    flat: dict[str, Any] = {}
    for name, value in given.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return flat


class Units(Reader[AxisUnits]):
    """A mapping from quantities of figures to the units of their axes."""

    allowed = f"a mapping from {', '.join(SI_UNITS)} to a unit, such as {{latency: s, energy: mJ}}"

    def read(self, given: object) -> AxisUnits:
        if not isinstance(given, dict) or not given:
            raise refuse(given, f"; write {self.allowed}")
        for name, symbol in given.items():
            try:
                Word(tuple(SI_UNITS)).read(name)
            except ValueRefusedError as unknown:
                # a key, whose own place is named, and not a value of `units`
                raise ValueRefusedError(f"is unknown{unknown.problem}", None, (name,)) from None
            try:
                parse(f"1 {symbol}", SI_UNITS[name])
            except UnitError:
                usual = getattr(USUAL_UNITS, name)
                raise refuse(symbol, f"; write a unit of {name}, such as {usual}", name) from None
        return AxisUnits(**{name: str(symbol).strip() for name, symbol in given.items()})


class Columns(Reader[int]):
    """How many columns of a page a figure spans."""

    allowed = "1 or 2"

    def read(self, given: object) -> int:
        if type(given) is not int or given not in (1, 2):
            raise refuse(given, f"; write {self.allowed}")
        return given

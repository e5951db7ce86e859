"""The options of a report: the keys of a ``report.yaml`` beside the results, and ``key=value``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError

from edgesim.errors import ResultsError, ScenarioError
from edgesim.scenario.documents.document import Document
from edgesim.scenario.documents.yaml_text import EmptyFileError, read_file
from edgesim.scenario.fields import Word
from edgesim.scenario.overrides import parse_override
from edgesim.scenario.section import Section, ValueRefusedError, key, reader_of, refuse
from reports.axis_units import USUAL_UNITS, AxisUnits
from reports.option_readers import (
    Columns,
    DisplayNames,
    FigureNames,
    KeyValues,
    Units,
    Words,
    metric_figure,
    shown_by,
)
from reports.run_data.scheme_selection import UnfitOptionError

FILE_NAME = "report.yaml"
AXES = ("time", "rounds", "bits", "energy")
SCALES = ("auto", "linear", "log")


class ReportOptions(Section):
    """What is drawn, and how; the defaults draw everything."""

    schemes: Annotated[dict[str, str], DisplayNames()] = key(
        "which schemes, in this order, and under which names; default: all",
        "{joint: Proposed, fedavg: FedAvg}",
        {},
    )
    slice: Annotated[dict[str, str], KeyValues()] = key(
        "only the runs of a sweep with these values, and those without the key",
        "{network.bandwidth: 10 MHz}",
        {},
    )
    figures: Annotated[tuple[str, ...], FigureNames()] = key(
        "which figures, by their names in the report; default: all", "[accuracy, latency]", ()
    )
    x: Annotated[tuple[str, ...], Words(*AXES)] = key(
        "the axes of the figures accuracy, loss and metrics, a panel each; default: time, rounds",
        "[time]",
        (),
    )
    x_scale: Annotated[str, Word(SCALES)] = key(
        "the x axes of curves, pareto and to-target", "log", "auto"
    )
    y_scale: Annotated[str, Word(SCALES)] = key("the y axes of curves and pareto", "log", "auto")
    units: Annotated[AxisUnits, Units()] = key(
        "the units of the axes of figures, not of tables; default: ms, s, Mbit, J",
        "{latency: s, energy: mJ}",
        USUAL_UNITS,
    )
    along: Annotated[str, Word()] = key(
        "the swept key of the x axis; default: each in turn", "network.bandwidth", ""
    )
    family: Annotated[str, Word()] = key(
        "the swept key whose values are the curves of a sweep's figures; further ones are held at "
        "their middle value; default: all of them as far as they fit",
        "budget.latency_threshold",
        "",
    )
    bars: Annotated[str, Word(("none", "devices"))] = key(
        "bars on learning curves; devices: one standard deviation over devices", "devices", "none"
    )
    panels: Annotated[str, Word(("together", "lettered", "apart"))] = key(
        "of figures with several: in one file; with (a), (b) at their corners; a file each",
        "lettered",
        "together",
    )
    style: Annotated[str, Word(("screen", "ieee"))] = key(
        "of the files in figures/: screen for pages and slides; ieee: 8 pt, readable in grey",
        "ieee",
        "screen",
    )
    columns: Annotated[int | None, Columns()] = key(
        "columns of a page that a figure spans; default: 2 on the screen, 1 in ieee", 2, None
    )
    font: Annotated[str, Word(("sans", "serif"))] = key("the letters", "serif", "sans")


KEYS = {field.alias or name: field for name, field in ReportOptions.model_fields.items()}


OwnMetrics = Callable[[], Collection[str]]


def read_options(
    path: Path | None = None, overrides: Sequence[str] = (), metrics: OwnMetrics = tuple
) -> ReportOptions:
    """The options of a file, changed by ``key=value`` texts; the defaults where it is empty.

    Args:
        path: of the file, if there is one.
        overrides: these texts.
        metrics: looks up the runs' own metrics, for a figure that may be of one.

    Raises:
        ScenarioError: the first thing that is wrong, in one sentence with its place.
    """
    return _validated(_written(path, overrides), metrics)


def _written(path: Path | None, overrides: Sequence[str]) -> Document:
    document = Document({})
    if path is not None:
        with suppress(EmptyFileError):
            document = read_file(path, FILE_NAME)
    for at, value in map(parse_override, overrides):
        has_dots = at[0] == "schemes" and len(at) > 2  # as labels may
        document.put(("schemes", ".".join(map(str, at[1:]))) if has_dots else at, value)
    return document


def file_beside(folder: Path) -> Path | None:
    """The report.yaml in a folder of results, if there is one."""
    path = folder / FILE_NAME
    return path if path.is_file() else None


@contextmanager
def said_where_written(path: Path | None, overrides: Sequence[str] = ()) -> Iterator[None]:
    """An error about a name that the results do not have gets the place of its option."""
    try:
        yield
    except UnfitOptionError as problem:
        problem.place = _written(path, overrides).place_of((problem.option,))
        raise


def options_from(
    given: Mapping[str, Any], metrics: OwnMetrics = tuple, figures: Sequence[str] | None = None
) -> ReportOptions:
    """The options that a Python function is given.

    Args:
        given: key -> value.
        metrics: see `read_options`.
        figures: in place of those that are given; None: these.

    Raises:
        ScenarioError: see `read_options`; or ``given`` is no mapping.
    """
    if not isinstance(given, Mapping):
        problem = f'{type(given).__name__} is no mapping; write one, such as {{"style": "ieee"}}'
        raise ScenarioError(f"options: {problem}")
    asked = {} if figures is None else {"figures": figures}
    return _validated(Document({**given, **asked}, {(): "options"}), metrics)


def _validated(document: Document, metrics: OwnMetrics) -> ReportOptions:
    try:
        options = ReportOptions.model_validate(document.tree)
    except ValidationError as problem:
        raise _first_error(problem, document) from None
    shown = map(shown_by, options.figures)
    further = [(name, known) for name, known in shown if name not in known]
    try:
        own, unreadable = list(map(metric_figure, metrics() if further else ())), False
    except ResultsError:  # comes again when the runs are read as a whole
        own, unreadable = [], True
    for name, known in further:
        try:
            Word((*known, *own)).read(name)
        except ValueRefusedError as refused:
            if unreadable and "did you mean" not in refused.problem:
                continue  # it may be a metric's
            raise document.error(("figures",), refused.problem, refused.shown) from None
    return options


def _first_error(problem: ValidationError, document: Document) -> ScenarioError:
    errors = problem.errors(include_url=False)
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    where = tuple(first["loc"])
    if first["type"] == "extra_forbidden":
        name = str(where[0])
        near = difflib.get_close_matches(name, KEYS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(KEYS)}."
        return ScenarioError(f"{document.place_of(where)}: a report has no key {name}; {hint}")
    refused = first.get("ctx", {}).get("error")
    if not isinstance(refused, ValueRefusedError):
        refused = refuse(first["input"], "; see docs/use/reports.md")
    refused = refused.below(*where)
    return document.error(refused.keys, refused.problem, refused.shown)


def explain_options() -> str:
    """Every key with its meaning, what is allowed, and an example."""
    lines = []
    for name, field in KEYS.items():
        reader, extra = reader_of(field), field.json_schema_extra
        example = extra.get("example") if isinstance(extra, dict) else ""
        allowed = reader.allowed if reader is not None else ""
        lines += [
            f"{name}: {field.description}",
            f"    allowed: {allowed}",
            f"    {name}={example}",
        ]
    return "\n".join(lines)

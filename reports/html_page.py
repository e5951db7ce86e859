"""One self-contained HTML page from any set of runs, with figures and tables as files beside it.

What draws is imported where it is used: folders that cannot be reported are refused before
matplotlib loads, which takes longer than to find them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgesim.errors import ResultsError
from edgesim.results.flat_scenario import versions
from edgesim.results.run_search import find_runs
from reports.atomic_folder import replaced_folder
from reports.report_options import ReportOptions
from reports.run_data.given_runs import found_schemes
from reports.run_data.missing_runs import (
    MissingRun,
    missing_runs,
    nothing_to_report,
    superseded_runs,
)
from reports.run_data.scheme_grouping import Scheme, swept_keys
from reports.run_data.scheme_selection import axis_along, named_schemes, sliced_schemes
from reports.styling.table_formats import Table
from reports.styling.unbroken_units import unbroken
from reports.text.difference_table import difference_table
from reports.text.findings import divergence_notes, overview, rankings, threshold_notes
from reports.text.ladder_tables import ladder_tables
from reports.text.liu_comparison import compare_with_liu
from reports.text.summary_tables import cost_table, scheme_table
from reports.text.sweep_tables import sweep_pivots
from reports.text.target_table import target_table

if TYPE_CHECKING:
    from reports.figure_files import PageFigure

MOST_ROWS = 100  # of a table on the page; the CSV has all
Progress = Callable[[int, int, str], None]  # figures done, figures in all, name of the next


def write_report(
    dirs: Sequence[Path],
    out: Path,
    options: ReportOptions | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write index.html, figures/NAME.{pdf,png,svg,csv} and tables/NAME.{csv,md,tex}.

    Args:
        dirs: run folders, or folders that contain some, such as a sweep's.
        out: the report's folder, made where it is missing; an earlier report there is replaced.
        options: what is drawn and how; None: everything.
        progress: called before each figure.

    Returns:
        The path of index.html.

    Raises:
        ResultsError: no finished run there, a broken run, runs that do not go together, an
            option that names what is not there, or no room.
    """
    options = options or ReportOptions()
    found = find_runs(dirs)
    lacking = missing_runs(found)
    if not found.finished:
        raise ResultsError(nothing_to_report(dirs, lacking))
    every = found_schemes(found)
    lacking += superseded_runs(found, {run.folder for s in every for run in s.runs})
    schemes = named_schemes(sliced_schemes(every, options.slice), options.schemes)
    from reports.figure_catalog import report_figures
    from reports.figure_files import write_figure

    figures, notes = report_figures(schemes, options)
    with replaced_folder(Path(out)) as new:
        for part in ("figures", "tables"):
            (new / part).mkdir()
        tables = _write_tables(schemes, options, new / "tables")
        written = []
        for done, figure in enumerate(figures):
            if progress is not None:
                progress(done, len(figures), figure.title)
            written.append(write_figure(figure, new / "figures", options))
        page = _render(schemes, options, tables, written, notes, lacking)
        (new / "index.html").write_text(page, encoding="utf-8")
    return Path(out) / "index.html"


def default_folder(dirs: Sequence[Path]) -> Path:
    """Where a report goes: inside the one folder given, or beside several."""
    return (dirs[0] if len(dirs) == 1 else dirs[0].parent) / "report"


def _write_tables(schemes: list[Scheme], options: ReportOptions, folder: Path) -> dict[str, Table]:
    from reports.figures.cell_topology import device_table

    keys, along = swept_keys(schemes, apart=bool(options.along)), None
    if options.along:
        along, keys = axis_along(schemes, keys, options.along)
    made = (
        scheme_table(schemes),
        cost_table(schemes),
        target_table(schemes),
        device_table(schemes),
        *ladder_tables(schemes),
        difference_table(schemes),
        *sweep_pivots(schemes, keys, along),
    )
    tables = {table.name: table for table in made if table is not None}
    for name, table in tables.items():
        (folder / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{name}.md").write_text(table.markdown(), encoding="utf-8")
        (folder / f"{name}.tex").write_text(table.latex(), encoding="utf-8")
    return tables


def _render(
    schemes: list[Scheme],
    options: ReportOptions,
    tables: dict[str, Table],
    figures: list[PageFigure],
    notes: list[str],
    lacking: list[MissingRun],
) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from reports.catalog.report_figure import SECTIONS
    from reports.interactive.chart_data import as_script_text, chart_data, lines_text

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = unbroken
    scenarios = dict.fromkeys(str(scheme.first.summary["scenario"]) for scheme in schemes)
    return environment.get_template("page.html.j2").render(
        title=", ".join(scenarios),
        overview=overview(schemes),
        rankings=rankings(schemes) + divergence_notes(schemes),
        claims=compare_with_liu(schemes),
        threshold_notes=threshold_notes(schemes),
        axis_notes=notes,
        chart_data=as_script_text(chart_data(schemes, swept_keys(schemes), options.units)),
        lines_text=lines_text(schemes),
        lacking=lacking,
        pivots=[table for name, table in tables.items() if "-by-" in name],
        finished=sum(len(scheme.runs) for scheme in schemes),
        tables=tables,
        most_rows=MOST_ROWS,
        sections={name: [f for f in figures if f.figure.section == name] for name in SECTIONS},
        schemes=schemes,
        warnings=_warnings(schemes),
        provenance=_provenance(schemes),
    )


def _warnings(schemes: list[Scheme]) -> list[tuple[str, str]]:
    """(whose, text): that versions differ, and each scheme's warnings once, with their seeds."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for scheme in schemes:
        for run in scheme.runs:
            for text in run.summary.get("warnings", ()):
                seeds.setdefault((scheme.label, str(text)), []).append(run.seed)
    mixed = [f"{what} {found}" for what, found in _provenance(schemes) if " / " in found]
    note = f"the runs were not made by the same versions: {', '.join(mixed)}."
    return [("all", note)] * bool(mixed) + [
        (f"{label}, seed {', '.join(map(str, whose))}", text)
        for (label, text), whose in seeds.items()
    ]


def _provenance(schemes: list[Scheme]) -> list[tuple[str, str]]:
    """(what, version); several values where the runs were not made alike."""
    flats = [versions(run.scenario) for scheme in schemes for run in scheme.runs]
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [(k, " / ".join(dict.fromkeys(flat.get(k, "unknown") for flat in flats))) for k in keys]

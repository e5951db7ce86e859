"""One self-contained HTML page from any set of runs, with figures and tables as files beside it."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from edgesim.results.flat_scenario import versions
from edgesim.results.run_files import ResultsError
from edgesim.results.run_search import find_runs
from reports.atomic_folder import replaced_folder
from reports.figure_catalog import SECTIONS, ReportFigure, report_figures
from reports.figures.cell_topology import device_table
from reports.run_data.missing_runs import (
    MissingRun,
    listed_folders,
    missing_runs,
    nothing_finished,
    superseded_runs,
)
from reports.run_data.scheme_grouping import Scheme, load_schemes
from reports.styling.figure_style import PAGE_IN, SCREEN, STYLES, FigureStyle, styled
from reports.styling.table_formats import Table
from reports.text.findings import overview, rankings, threshold_notes
from reports.text.liu_comparison import compare_with_liu, reference_note
from reports.text.summary_tables import cost_table, difference_table, scheme_table, target_table

# without dates, so that the same runs give the same bytes
FILE_METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
MOST_ROWS = 100  # of a table on the page; the CSV has all
MOST_LINKED = 400_000  # bytes of CSV that the page carries; longer ones are only beside it


@dataclass(frozen=True)
class PageFigure:
    """A figure on the page, with image and numbers as data URIs.

    percent: of the page's width.     csv_link: "" where the numbers are too long.
    """

    figure: ReportFigure
    image: str
    percent: int
    table: Table | None
    csv_link: str


def write_report(dirs: Sequence[Path], out: Path, style: str = SCREEN.name) -> Path:
    """Write index.html, figures/NAME.{pdf,png,svg,csv} and tables/NAME.{csv,md,tex}.

    Args:
        dirs: run folders, or folders that contain some, such as a sweep's.
        out: the report's folder, made where it is missing; an earlier report there is replaced.
        style: of the files in figures/, "screen" or "ieee"; the page always shows the screen's.

    Returns:
        The path of index.html.

    Raises:
        ResultsError: no finished run there, a broken run, runs that do not go together, an
            unknown style, or no room.
    """
    if style not in STYLES:
        raise ResultsError(f'The style "{style}" is unknown; there are {" and ".join(STYLES)}.')
    found = find_runs(dirs)
    lacking = missing_runs(found)
    if not found.finished:
        raise ResultsError(nothing_finished(dirs, lacking))
    schemes = load_schemes(found.finished, listed_folders(found))
    lacking += superseded_runs(found, {run.folder for s in schemes for run in s.runs})
    with replaced_folder(Path(out)) as new:
        for part in ("figures", "tables"):
            (new / part).mkdir()
        tables = _write_tables(schemes, new / "tables")
        written = [
            _write_figure(f, new / "figures", STYLES[style]) for f in report_figures(schemes)
        ]
        figures = [figure for figure in written if figure is not None]
        page = _render(schemes, tables, figures, lacking)
        (new / "index.html").write_text(page, encoding="utf-8")
    return Path(out) / "index.html"


def _write_tables(schemes: list[Scheme], folder: Path) -> dict[str, Table]:
    made = (
        scheme_table(schemes),
        cost_table(schemes),
        target_table(schemes),
        device_table(schemes[0].first),
        difference_table(schemes),
    )
    tables = {table.name: table for table in made if table is not None}
    for name, table in tables.items():
        (folder / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{name}.md").write_text(table.markdown(), encoding="utf-8")
        (folder / f"{name}.tex").write_text(table.latex(), encoding="utf-8")
    return tables


def _write_figure(figure: ReportFigure, folder: Path, style: FigureStyle) -> PageFigure | None:
    """Write the files of a figure; None where there is nothing to draw."""
    with styled(style):
        drawn = laid_out(figure, style)
        if drawn is None:
            return None
        files = {kind: _encoded(drawn, kind) for kind in FILE_METADATA}
    for kind, content in files.items():
        (folder / f"{figure.name}.{kind}").write_bytes(content)
    svg = files["svg"]
    if style is not SCREEN:
        with styled(SCREEN):
            on_page = laid_out(figure, SCREEN)
            svg = svg if on_page is None else _encoded(on_page, "svg")
    table = figure.table()
    csv = table.csv().encode("utf-8") if table else b""
    if table:
        (folder / f"{figure.name}.csv").write_bytes(csv)
    link = _data_uri("text/csv", csv) if 0 < len(csv) <= MOST_LINKED else ""
    return PageFigure(figure, _data_uri("image/svg+xml", svg), _percent(svg), table, link)


def laid_out(figure: ReportFigure, style: FigureStyle) -> Figure | None:
    """The figure, laid out once, so that its files differ in nothing but their format."""
    drawn = figure.draw(style)
    if drawn is not None:
        drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
    return drawn


def _encoded(drawn: Figure, kind: str) -> bytes:
    out = io.BytesIO()
    drawn.savefig(out, format=kind, metadata=FILE_METADATA[kind])
    return out.getvalue()


def _percent(svg: bytes) -> int:
    """The width of a picture, of that of the page."""
    points = re.search(rb'width="([\d.]+)pt"', svg[:2000])
    return min(100, round(float(points[1]) / 72 / PAGE_IN * 100)) if points else 100


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _render(
    schemes: list[Scheme],
    tables: dict[str, Table],
    figures: list[PageFigure],
    lacking: list[MissingRun],
) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    aiming, others = threshold_notes(schemes)
    scenarios = dict.fromkeys(str(scheme.first.summary["scenario"]) for scheme in schemes)
    return environment.get_template("page.html.j2").render(
        title=", ".join(scenarios),
        overview=overview(schemes),
        rankings=rankings(schemes),
        claims=compare_with_liu(schemes),
        reference=reference_note(schemes),
        aiming=aiming,
        others=others,
        lacking=lacking,
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

"""One self-contained HTML page from any set of runs, with its figures and tables as files beside it."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from reports import report_folder as output
from reports.figures.figure_catalog import SECTIONS, Plate, plates
from reports.run_data.load_runs import ReportError, Run, find_runs
from reports.run_data.schemes import Scheme, load_schemes
from reports.run_data.sweep_status import Missing, listed, missing, nothing_finished, superseded
from reports.styling.house_style import PAGE_IN, SCREEN, STYLES, Style, settings
from reports.styling.table_formats import Table
from reports.text import findings
from reports.text import summary_tables as tables

METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
MOST_ROWS = 100  # of a table on the page; the CSV has all
MOST_LINK = (
    400_000  # characters of CSV that the page itself carries; longer ones are only beside it
)


@dataclass(frozen=True)
class Picture:
    """A figure on the page: its plate, the picture and its numbers as data URIs (no link where they are too long).

    percent: how much of the page's width it takes.
    """

    plate: Plate
    image: str
    percent: int
    table: Table | None
    link: str


def write_report(dirs: Sequence[Path], out: Path, style: str = SCREEN.name) -> Path:
    """Write OUT/index.html, OUT/figures/*.{pdf,png,svg,csv} and OUT/tables/*.{csv,md,tex}; return the page.

    Args:
        dirs: run folders, or folders that contain some, such as a sweep's.
        out: the report's folder, made where it is missing; an earlier report there is replaced.
        style: of the files in figures/, "screen" or "ieee"; the page always shows the screen's.
    Raises:
        ReportError: no finished run there, a broken run, runs that do not go together, an unknown style, or no room.
    """
    if style not in STYLES:
        raise ReportError(f'The style "{style}" is unknown; there are {" and ".join(STYLES)}.')
    found = find_runs(dirs)
    lacking = missing(found)
    if not found.finished:
        raise ReportError(nothing_finished(dirs, lacking))
    schemes = load_schemes(found.finished, listed(found))
    reported = [run.folder for scheme in schemes for run in scheme.runs]
    lacking += superseded(found, reported)
    with output.replacing(Path(out)) as new:
        for part in ("figures", "tables"):
            (new / part).mkdir()
        shown = _write_tables(schemes, new / "tables")
        made = [write_plate(plate, new / "figures", STYLES[style]) for plate in plates(schemes)]
        pictures = [picture for picture in made if picture is not None]
        page = _render(schemes, shown, pictures, lacking)
        (new / "index.html").write_text(page, encoding="utf-8")
    return Path(out) / "index.html"


def _write_tables(schemes: list[Scheme], folder: Path) -> dict[str, Table]:
    made = (
        tables.scheme_table(schemes),
        tables.cost_table(schemes),
        tables.target_table(schemes),
        tables.device_table(schemes[0].first),
        tables.difference_table(schemes),
    )
    shown = {table.name: table for table in made if table is not None}
    for name, table in shown.items():
        (folder / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{name}.md").write_text(table.markdown(), encoding="utf-8")
        (folder / f"{name}.tex").write_text(table.latex(), encoding="utf-8")
    return shown


def write_plate(plate: Plate, folder: Path, style: Style) -> Picture | None:
    """Write NAME.pdf, .png, .svg in a style, and NAME.csv; return what the page shows (None: nothing to draw)."""
    svg = write_figure(plate, folder, style)
    if svg is None:
        return None
    if style is not SCREEN:
        with matplotlib.rc_context(settings(SCREEN)):
            svg = _svg(_laid_out(plate, SCREEN))
    table = plate.data()
    text = table.csv() if table else ""
    if table:
        (folder / f"{plate.name}.csv").write_text(text, encoding="utf-8")
    link = _uri("text/csv", text.encode("utf-8")) if 0 < len(text) <= MOST_LINK else ""
    return Picture(plate, _uri("image/svg+xml", svg), _percent(svg), table, link)


def _percent(svg: bytes) -> int:
    """The width of a picture, of that of the page."""
    points = re.search(rb'width="([\d.]+)pt"', svg[:2000])
    return min(100, round(float(points[1]) / 72 / PAGE_IN * 100)) if points else 100


def write_figure(plate: Plate, folder: Path, style: Style) -> bytes | None:
    """Write NAME.pdf, .png and .svg; return the SVG (None: nothing to draw, nothing written)."""
    with matplotlib.rc_context(settings(style)):
        figure = _laid_out(plate, style)
        if figure is None:
            return None
        for kind, metadata in METADATA.items():
            figure.savefig(folder / f"{plate.name}.{kind}", metadata=metadata)
    return (folder / f"{plate.name}.svg").read_bytes()


def _laid_out(plate: Plate, style: Style) -> Figure | None:
    """The figure, laid out once, so that its files differ in nothing but their format."""
    figure = plate.draw(style)
    if figure is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return figure


def _svg(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata=METADATA["svg"])
    return out.getvalue()


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _render(
    schemes: list[Scheme], shown: dict[str, Table], pictures: list[Picture], lacking: list[Missing]
) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=here,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    aiming, others = findings.threshold_notes(schemes)
    return environment.get_template("page.html.j2").render(
        title=", ".join(dict.fromkeys(str(scheme.first.summary["scenario"]) for scheme in schemes)),
        overview=findings.overview(schemes),
        orders=findings.orders(schemes),
        claims=findings.compare(schemes),
        reference=findings.reference_note(schemes),
        aiming=aiming,
        others=others,
        lacking=lacking,
        finished=sum(len(scheme.runs) for scheme in schemes),
        tables=shown,
        most_rows=MOST_ROWS,
        sections={name: [p for p in pictures if p.plate.section == name] for name in SECTIONS},
        schemes=schemes,
        warnings=_warnings(schemes),
        provenance=_provenance(schemes),
    )


def _warnings(schemes: list[Scheme]) -> list[tuple[str, str]]:
    """(whose, text): every warning once per scheme, with the seeds that had it; first that versions differ."""
    said: dict[tuple[str, str], list[int]] = {}
    for scheme in schemes:
        for run in scheme.runs:
            for text in run.summary.get("warnings", ()):
                said.setdefault((scheme.label, str(text)), []).append(run.seed)
    mixed = [f"{what} {versions}" for what, versions in _provenance(schemes) if " / " in versions]
    notes = (
        [("all", f"the runs were not made by the same versions: {', '.join(mixed)}.")]
        if mixed
        else []
    )
    return notes + [
        (f"{label}, seed {', '.join(map(str, seeds))}", text)
        for (label, text), seeds in said.items()
    ]


def _provenance(schemes: list[Scheme]) -> list[tuple[str, str]]:
    """(what, version); several values where the runs were not made alike."""
    runs = [run for scheme in schemes for run in scheme.runs]
    flats = [_flat_provenance(run) for run in runs]
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [
        (key, " / ".join(dict.fromkeys(flat.get(key, "unknown") for flat in flats))) for key in keys
    ]


def _flat_provenance(run: Run) -> dict[str, str]:
    def walk(value: Any, prefix: str) -> dict[str, str]:
        if not isinstance(value, dict):
            return {prefix: str(value)}
        return {
            k: v
            for key, part in value.items()
            for k, v in walk(part, f"{prefix}.{key}".lstrip(".")).items()
        }

    return walk(run.scenario.get("provenance") or {}, "")

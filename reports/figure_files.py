"""The files of a figure: PDF, PNG and SVG of one drawing, and what the page shows of it."""

from __future__ import annotations

import base64
import io
import re
import string
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.text import Text

from edgesim.errors import ResultsError
from reports.catalog.report_figure import ReportFigure
from reports.combined_renderer import POINTS, PointsCanvas, draw_formats
from reports.report_options import ReportOptions
from reports.styling.figure_style import (
    PAGE_IN,
    SCREEN,
    STYLES,
    WIDTHS_IN,
    FigureStyle,
    styled,
)
from reports.styling.panel_arrangement import letter_panels, panels_apart
from reports.styling.table_formats import Table

KINDS = ("pdf", "png", "svg")
# without dates, so that the same runs give the same bytes
FILE_METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
# of zlib: a tenth larger than with 6, in two thirds of the time
PNG_COMPRESSION = {"compress_level": 3}
LINE_SPACING = 1.2  # of letters' height; what STIX itself asks for is nearly two
MOST_LINKED = 400_000  # bytes of CSV that the page carries; longer ones are only beside it


@dataclass(frozen=True)
class PageFigure:
    """A figure on the page, with image and numbers as data URIs.

    percent: of the page's width.     csv_link: "" where the numbers are too long.
    files: their names, (what, name).
    """

    figure: ReportFigure
    image: str
    percent: int
    table: Table
    csv_link: str
    files: tuple[tuple[str, str], ...]


def page_style(options: ReportOptions) -> FigureStyle:
    """How figures look on the page, whatever the style of their files."""
    return replace(
        SCREEN,
        x_scale=options.x_scale,
        y_scale=options.y_scale,
        device_bars=options.bars == "devices",
        units=options.units,
    )


def file_style(options: ReportOptions) -> FigureStyle:
    """How figures look in their files."""
    own, page = STYLES[options.style], page_style(options)
    return replace(
        own,
        width_in=WIDTHS_IN[own.name][options.columns] if options.columns else own.width_in,
        serif=options.font == "serif",
        x_scale=page.x_scale,
        y_scale=page.y_scale,
        device_bars=page.device_bars,
        units=page.units,
    )


def write_figure(figure: ReportFigure, folder: Path, options: ReportOptions) -> PageFigure:
    """Write the files of a figure and its numbers."""
    style, shown = file_style(options), page_style(options)
    written = _files(figure, style, options.panels)
    for name, content in written.items():
        (folder / name).write_bytes(content)
    svg = written.get(f"{figure.name}.svg")
    if style != shown or svg is None:
        panels = "lettered" if options.panels == "lettered" else "together"
        svg = _files(figure, shown, panels, ("svg",))[f"{figure.name}.svg"]
    table = figure.table()
    if table is None:
        raise ResultsError(f"The figure {figure.name} has no numbers.")
    csv = table.csv().encode("utf-8")
    (folder / f"{figure.name}.csv").write_bytes(csv)
    link = data_uri("text/csv", csv) if len(csv) <= MOST_LINKED else ""
    names = tuple((_shown_name(name, figure.name), name) for name in written)
    return PageFigure(figure, data_uri("image/svg+xml", svg), _percent(svg), table, link, names)


def _files(
    figure: ReportFigure,
    style: FigureStyle,
    panels: str,
    kinds: tuple[str, ...] = KINDS,
) -> dict[str, bytes]:
    """Name -> content, of a figure or of each of its panels; each is drawn once for all kinds."""
    with styled(style):
        drawn = panels_apart(figure.draw, style) if panels == "apart" else [figure.draw(style)]
        names = (
            [f"{figure.name}-{letter}" for letter in string.ascii_lowercase[: len(drawn)]]
            if len(drawn) > 1
            else [figure.name]
        )
        files: dict[str, bytes] = {}
        for name, each in zip(names, drawn, strict=False):
            if panels == "lettered":
                letter_panels(each)
            each.set_dpi(POINTS)
            PointsCanvas(each)
            lay_out(each)
            encoded = _every_format(each) if kinds == KINDS else {"svg": _svg(each)}
            files |= {f"{name}.{kind}": encoded[kind] for kind in kinds}
    return files


def lay_out(drawn: Figure) -> None:
    """Place the parts of a figure once, so that its files differ in nothing but their format."""
    for text in drawn.findobj(Text):
        if "\n" in text.get_text():
            text.set_linespacing(LINE_SPACING)
    layout = drawn.get_layout_engine()
    if layout is not None:
        layout.execute(drawn)
        drawn.set_layout_engine(None)  # with any engine, "none" too, each file is drawn twice


def _every_format(drawn: Figure) -> dict[str, bytes]:
    return draw_formats(drawn, rcParams["savefig.dpi"], FILE_METADATA, PNG_COMPRESSION)


def _svg(drawn: Figure) -> bytes:
    out = io.BytesIO()
    drawn.savefig(out, format="svg", metadata=FILE_METADATA["svg"])
    return out.getvalue()


def _shown_name(file: str, name: str) -> str:
    """What a link to a file says: PDF, or PDF b of a panel."""
    stem, _, kind = file.rpartition(".")
    return f"{kind.upper()} {stem[len(name) + 1 :]}".rstrip()


def _percent(svg: bytes) -> int:
    """The width of a picture, of that of the page."""
    points = re.search(rb'width="([\d.]+)pt"', svg[:2000])
    return min(100, round(float(points[1]) / 72 / PAGE_IN * 100)) if points else 100


def data_uri(kind: str, content: bytes) -> str:
    """Content as part of a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"

"""A matplotlib renderer that draws a figure for PDF, SVG and PNG in one pass.

Half of the time of a drawing goes into finding out what is to be drawn: ticks, labels, legends.
`Figure.savefig` repeats that for every format.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.backend_bases import FigureCanvasBase, GraphicsContextBase, RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_pdf import PdfFile, RendererPdf
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Transform, TransformedBbox, TransformedPath
from PIL import Image

POINTS = 72  # dots per inch of PDF and SVG, whose unit is the point
LineHeights = tuple[float, float, float] | tuple[None, None, None]


def draw_formats(
    drawn: Figure, dpi: float, metadata: dict[str, Any], png: dict[str, Any]
) -> dict[str, bytes]:
    """A figure that is laid out, as pdf, svg and png.

    Args:
        drawn: the figure; without a layout engine.
        dpi: dots per inch of the PNG, and of images within the others.
        metadata: of PDF and SVG, as `Figure.savefig` takes it; a PNG has none.
        png: options of its encoder.

    Returns:
        Format -> content. SVG is that of `Figure.savefig` byte by byte; PDF and PNG place texts by
        its metrics, less than a dot apart.
    """
    width_in, height_in = drawn.get_size_inches()
    pdf_file, svg_file, png_file = io.BytesIO(), io.StringIO(), io.BytesIO()
    before = drawn.dpi
    drawn.dpi = POINTS
    pdf = PdfFile(pdf_file, metadata=metadata["pdf"])
    try:
        pdf.newPage(width_in, height_in)
        size = width_in * POINTS, height_in * POINTS
        svg = RendererSVG(*size, svg_file, image_dpi=dpi, metadata=metadata["svg"])
        agg = ScaledAgg(width_in * dpi, height_in * dpi, dpi)
        page = RendererPdf(pdf, dpi, height_in, width_in)
        combined = CombinedRenderer(page, svg, agg)
        # parts that are to be rasterised, such as the colours of a scale, reach all three as images
        mixed: Any = MixedModeRenderer(drawn, width_in, height_in, dpi, combined)
        drawn.draw(mixed)
        page.finalize()
        pdf.finalize()
        svg.finalize()
    finally:
        pdf.close()
        drawn.dpi = before
    dots = Image.fromarray(np.asarray(agg.renderer.buffer_rgba()))
    dots.convert("RGB").save(png_file, format="png", dpi=(dpi, dpi), **png)
    svg_bytes = svg_file.getvalue().encode("utf-8")
    return {"pdf": pdf_file.getvalue(), "png": png_file.getvalue(), "svg": svg_bytes}


class PointsRenderer(RendererBase):
    """Measures texts in points, as SVG has them; each once for all figures."""

    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: Any
    ) -> tuple[float, float, float]:
        return _text_size(s, prop.copy(), ismath)

    def _get_font_height_metrics(self, prop: FontProperties) -> LineHeights:
        """Else matplotlib reads them from the font's file for every text, longer than the rest."""
        return _line_heights(prop.copy())


@lru_cache(maxsize=10_000)
def _text_size(s: str, prop: FontProperties, ismath: Any) -> tuple[float, float, float]:
    return text_to_path.get_text_width_height_descent(s, prop, ismath)


@lru_cache(maxsize=100)
def _line_heights(prop: FontProperties) -> LineHeights:
    """Ascent, descent and gap between lines of a font; None where its file does not say."""
    font = get_font(findfont(prop))
    table, scale = font.get_sfnt_table("OS/2"), prop.get_size_in_points() / font.units_per_EM
    if table is None:
        return None, None, None
    ascent, descent = scale * table["sTypoAscender"], -scale * table["sTypoDescender"]
    return ascent, descent, scale * table["sTypoLineGap"]


class PointsCanvas(FigureCanvasBase):
    """Lays a figure out by the texts that `draw_formats` draws."""

    renderer = PointsRenderer()

    def get_renderer(self) -> PointsRenderer:
        return self.renderer


class CombinedRenderer(PointsRenderer):
    """Passes what is drawn in points, y upwards, to the renderers of PDF, SVG and PNG.

    The state of a drawing (`new_gc`) is that of PDF.
    """

    def __init__(self, pdf: RendererPdf, svg: RendererSVG, agg: ScaledAgg) -> None:
        super().__init__()
        self.pdf, self.svg, self.agg = pdf, svg, agg

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        for renderer in (self.pdf, self.svg, self.agg):
            renderer.draw_path(gc, path, transform, rgbFace)

    def draw_markers(self, gc: Any, *arguments: Any, **more: Any) -> None:
        for renderer in (self.pdf, self.svg, self.agg):
            renderer.draw_markers(gc, *arguments, **more)

    def draw_path_collection(self, gc: Any, *arguments: Any, **more: Any) -> None:
        for renderer in (self.pdf, self.svg, self.agg):
            renderer.draw_path_collection(gc, *arguments, **more)

    def draw_quad_mesh(self, gc: Any, *arguments: Any) -> None:
        for renderer in (self.pdf, self.svg, self.agg):
            renderer.draw_quad_mesh(gc, *arguments)

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        for renderer in (self.pdf, self.svg, self.agg):
            renderer.draw_image(gc, x, y, im)

    def draw_text(self, gc: Any, x: float, y: float, *text: Any, **more: Any) -> None:
        self.pdf.draw_text(gc, x, y, *text, **more)
        down = self.svg.height - y
        for renderer in (self.svg, self.agg):
            renderer.draw_text(gc, x, down, *text, **more)

    def open_group(self, s: str, gid: str | None = None) -> None:
        self.svg.open_group(s, gid)

    def close_group(self, s: str) -> None:
        self.svg.close_group(s)

    def new_gc(self) -> Any:
        return self.pdf.new_gc()

    def flipy(self) -> bool:
        return False

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.pdf.get_canvas_width_height()

    def get_image_magnification(self) -> float:
        return self.pdf.get_image_magnification()

    def option_image_nocomposite(self) -> bool:
        return self.pdf.option_image_nocomposite()


class ScaledAgg:
    """Draws in dots what comes in points."""

    def __init__(self, width: float, height: float, dpi: float) -> None:
        self.renderer = RendererAgg(width, height, dpi)
        self.scale = Affine2D().scale(dpi / POINTS)

    def scaled(self, transform: Transform) -> Affine2D:
        return Affine2D(self.scale.get_matrix() @ transform.get_matrix())

    def clipped(self, gc: Any) -> Any:
        """The state of a drawing, with what clips it in dots."""
        rectangle, (path, transform) = gc.get_clip_rectangle(), gc.get_clip_path()
        own: Any = GraphicsContextBase()
        own.copy_properties(gc)
        if rectangle is not None:
            own.set_clip_rectangle(TransformedBbox(rectangle, self.scale))
        if path is not None:
            own.set_clip_path(TransformedPath(path, transform + self.scale))
        return own

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        self.renderer.draw_path(self.clipped(gc), path, self.scaled(transform), rgbFace)

    def draw_markers(
        self,
        gc: Any,
        marker: Any,
        marker_transform: Any,
        path: Any,
        transform: Any,
        rgbFace: Any = None,
    ) -> None:
        shape, places = self.scaled(marker_transform), self.scaled(transform)
        self.renderer.draw_markers(self.clipped(gc), marker, shape, path, places, rgbFace)

    def draw_path_collection(
        self,
        gc: Any,
        transform: Any,
        paths: Any,
        transforms: Any,
        offsets: Any,
        offset_transform: Any,
        *look: Any,
        **more: Any,
    ) -> None:
        self.renderer.draw_path_collection(
            self.clipped(gc),
            self.scaled(transform),
            paths,
            transforms,
            offsets,
            self.scaled(offset_transform),
            *look,
            **more,
        )

    def draw_quad_mesh(
        self,
        gc: Any,
        transform: Any,
        columns: int,
        rows: int,
        corners: Any,
        offsets: Any,
        offset_transform: Any,
        *look: Any,
    ) -> None:
        shape, places = self.scaled(transform), self.scaled(offset_transform)
        self.renderer.draw_quad_mesh(
            self.clipped(gc), shape, columns, rows, corners, offsets, places, *look
        )

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        x, y = self.scale.transform((x, y))
        self.renderer.draw_image(self.clipped(gc), x, y, im)

    def draw_text(self, gc: Any, x: float, y: float, *text: Any, **more: Any) -> None:
        x, y = self.scale.transform((x, y))
        self.renderer.draw_text(self.clipped(gc), x, y, *text, **more)

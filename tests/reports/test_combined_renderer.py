"""One drawing pass gives what `Figure.savefig` gives format by format."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from matplotlib import patheffects, pyplot, rc_context
from PIL import Image

from reports.combined_renderer import draw_formats
from reports.figure_files import FILE_METADATA, KINDS, PNG_COMPRESSION
from reports.styling.figure_style import SCREEN, styled

DPI = 120
NUMBER = rb"-?\d+\.?\d*"


@pytest.fixture(scope="module")
def drawn():
    """One of everything that a report draws: {format: (one pass, savefig)}."""
    with styled(SCREEN), rc_context({"pdf.compression": 0}):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(4, 2))
        edge = [patheffects.Stroke(linewidth=3, foreground="w"), patheffects.Normal()]
        left.plot([0, 1, 3], [1, 4, 2], marker="o", ls="--", label="a line", path_effects=edge)
        left.scatter([1, 2], [3, 1], s=[20, 60], c=["C1", "C2"])
        left.bar([2], [3], hatch="//", alpha=0.5, clip_on=True)
        left.fill_between([0, 3], [0, 1], [2, 3], alpha=0.3)
        left.text(0.2, 3, "two\nlines", rotation=30)
        left.legend()
        image = right.imshow(np.arange(12).reshape(3, 4), aspect="auto")
        figure.colorbar(image)
        one = draw_formats(figure, DPI, FILE_METADATA, PNG_COMPRESSION)
        each = {}
        for kind in KINDS:
            out = io.BytesIO()
            figure.savefig(out, format=kind, dpi=DPI, metadata=FILE_METADATA.get(kind))
            each[kind] = out.getvalue()
        pyplot.close(figure)
    return {kind: (one[kind], each[kind]) for kind in each}


@pytest.mark.slow
def test_svg_is_the_same_byte_by_byte(drawn):
    one, each = drawn["svg"]
    assert one == each


def test_pdf_differs_by_less_than_a_tenth_of_a_point(drawn):
    pages = [re.search(rb"stream\n(.*?)endstream", pdf, re.S)[1] for pdf in drawn["pdf"]]
    numbers = [np.array(re.findall(NUMBER, page), dtype=float) for page in pages]
    assert len(numbers[0]) > 300 and numbers[0] == pytest.approx(numbers[1], abs=0.1)
    assert re.sub(NUMBER, b"", pages[0]) == re.sub(NUMBER, b"", pages[1])


def test_png_has_the_same_dots_but_for_the_edges_of_texts(drawn):
    one, each = (
        np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float) for png in drawn["png"]
    )
    assert one.shape == each.shape == (2 * DPI, 4 * DPI, 3)
    difference = np.abs(one - each).max(axis=2)
    assert (difference > 8).mean() < 0.05
    # of 4 by 4 dots each: a text moves by less than that
    coarse = (one - each).reshape(2 * DPI // 4, 4, DPI, 4, 3).mean(axis=(1, 3))
    assert np.abs(coarse).max() < 64

"""Files of figures."""

from dataclasses import replace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from pytest import approx

from reports.figure_files import lay_out
from reports.styling.figure_style import STYLES, styled


@pytest.mark.parametrize("serif", [False, True])
def test_lines_of_a_text_stand_as_close_in_either_font(serif):
    """STIX asks for nearly two lines between lines."""
    with styled(replace(STYLES["ieee"], serif=serif)):
        figure = Figure()
        texts = [figure.text(0.5, 0.5, "\n".join(["(joint)"] * n)) for n in (2, 3)]
        FigureCanvasAgg(figure)
        lay_out(figure)
        two, three = (text.get_window_extent().height for text in texts)
    assert (three - two) * 72 / figure.dpi == approx(1.2 * 8, rel=0.05)

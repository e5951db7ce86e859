"""Letters at the corners of panels."""

import pytest

from reports.figure_files import lay_out
from reports.figures import payload_and_energy, round_latency
from reports.styling.figure_style import STYLES, styled
from reports.styling.panel_arrangement import letter_panels


@pytest.mark.parametrize(
    "draw", [payload_and_energy.payload_and_energy, round_latency.latency_by_phase]
)
@pytest.mark.parametrize("name", STYLES)
def test_a_legend_does_not_cover_the_letter_of_its_panel(two_schemes, draw, name):
    with styled(STYLES[name]):
        figure = draw(two_schemes, STYLES[name])
        letter_panels(figure)
        lay_out(figure)
        figure.draw_without_rendering()
    for letter, panel in zip("ab", figure.axes, strict=True):
        assert panel.get_title(loc="left") == f"({letter})"
        box, legend = panel._left_title.get_window_extent(), panel.get_legend().get_window_extent()
        assert legend.y1 <= box.y0 and box.y1 <= figure.bbox.y1

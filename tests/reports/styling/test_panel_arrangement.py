"""Letters at the corners of panels, and panels as figures of their own."""

from functools import partial

import pytest
from matplotlib.figure import Figure

from reports.figure_files import lay_out
from reports.figures import round_latency
from reports.figures.costs import payload_and_energy
from reports.figures.sweep_maps import sweep_map_figure
from reports.run_data.scheme_grouping import swept_keys
from reports.run_data.statistics.metrics import ACCURACY
from reports.styling.figure_style import SCREEN, STYLES, styled
from reports.styling.panel_arrangement import letter_panels, panels_apart
from reports.styling.point_labels import PointLabel, label_points


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


@pytest.mark.slow
def test_panels_apart_have_the_scale_of_colours_that_they_shared(swept_schemes):
    with styled(SCREEN):
        keys = swept_keys(swept_schemes)
        liu, fedavg = panels_apart(partial(sweep_map_figure, swept_schemes, keys, ACCURACY), SCREEN)
        for figure, title in (liu, "liu"), (fedavg, "fedavg"):
            lay_out(figure)
            panel, scale = figure.axes
            assert (panel.get_title(loc="left"), scale.get_ylabel()) == (title, ACCURACY.axis()[1])
            assert scale.get_ylim() == pytest.approx((10.5, 50.5))
            assert panel.get_position().x1 < scale.get_position().x0


def test_lines_that_another_panel_named_have_a_legend_apart(two_schemes):
    with styled(SCREEN):
        named, curves = panels_apart(partial(round_latency.latency_by_round, two_schemes), SCREEN)
    assert not named.legends
    shown = [text.get_text() for text in curves.legends[0].get_texts()]
    assert shown[0] == "joint" and shown[-1] == "threshold 25 ms" and len(shown) == 3


@pytest.mark.slow
def test_each_panel_apart_has_the_scale_of_its_own_colours_or_none():
    def three_panels(_):
        figure = Figure(layout="constrained")
        for i, panel in enumerate(figure.subplots(1, 3)):
            colours = {"c": [0.0, i]} if i else {}
            dots = panel.scatter([0, 1], [0, 1], **colours)
            if i:
                figure.colorbar(dots, ax=panel).set_label(f"scale {i}")
        return figure

    apart = panels_apart(three_panels, SCREEN)
    assert [[each.get_ylabel() for each in figure.axes[1:]] for figure in apart] == [
        [],
        ["scale 1"],
        ["scale 2"],
    ]


@pytest.mark.slow
def test_texts_beside_points_are_placed_in_the_panel_that_is_taken_apart():
    """Texts of two points lie over each other in half a column, and do not in a whole one."""

    def two_narrow_panels(_):
        figure = Figure(figsize=(1.6, 2.0), layout="constrained")
        for panel in figure.subplots(1, 2):
            panel.set(xlim=(0, 3), ylim=(0, 1))
            label_points(
                figure, panel, [PointLabel(1, 0.5, "1 MHz"), PointLabel(1.3, 0.5, "2 MHz")]
            )
        return figure

    def shown(figure):
        return [sum(text.get_visible() for text in panel.texts) for panel in figure.axes]

    with styled(SCREEN):
        assert shown(two_narrow_panels(SCREEN)) != [2, 2]
        for figure in panels_apart(two_narrow_panels, SCREEN):
            assert shown(figure) == [2]

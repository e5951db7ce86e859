"""Texts beside points."""

from matplotlib.figure import Figure

from reports.styling.point_labels import PointLabel, label_points


def test_a_text_that_has_no_room_is_left_out_the_first_stay():
    """Four texts fit around a point in the middle, one below and inside of one in a corner."""
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 10), ylim=(0, 10))
    middle = [PointLabel(5, 5, f"{i} MHz") for i in range(6)]
    corner = [PointLabel(10, 10, name) for name in ("a", "b")]
    label_points(figure, panel, [*middle, *corner])
    assert [text.get_text() for text in panel.texts] == ["0 MHz", "1 MHz", "2 MHz", "3 MHz", "a"]

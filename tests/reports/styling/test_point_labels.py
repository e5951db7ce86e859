"""Texts beside points."""

from matplotlib.figure import Figure

from reports.styling.point_labels import PointLabel, arrange_labels, label_points


def test_a_text_that_has_no_room_is_left_out_the_first_stay():
    """Four texts fit around a point in the middle, one below and inside of one in a corner."""
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 10), ylim=(0, 10))
    middle = [PointLabel(5, 5, f"{i} MHz") for i in range(6)]
    corner = [PointLabel(10, 10, name) for name in ("a", "b")]
    label_points(figure, panel, [*middle, *corner])
    shown = [text.get_text() for text in panel.texts if text.get_visible()]
    assert shown == ["0 MHz", "1 MHz", "2 MHz", "3 MHz", "a"]


def test_a_text_lies_on_no_marker_of_the_panel():
    """Dots of seeds at three corners of a point leave its text the last one."""
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 10), ylim=(0, 10))
    panel.plot([5.5, 5.5, 4.5], [5.4, 4.6, 5.4], ls="none", marker=".")
    label_points(figure, panel, [PointLabel(5, 5, "10 MHz")])
    (text,) = panel.texts
    assert (text.get_ha(), text.get_va()) == ("right", "top")


def test_texts_do_not_run_into_each_other():
    """Side by side above their points, they would be one pixel apart."""
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 10), ylim=(0, 10))
    label_points(figure, panel, [PointLabel(2, 9, "10 MHz")])
    width = panel.texts[0].get_window_extent().width + 1
    second = 2 + width / panel.bbox.width * 10
    panel.texts[0].remove()
    label_points(figure, panel, [PointLabel(2, 5, "10 MHz"), PointLabel(second, 5, "20 MHz")])
    assert [text.get_va() for text in panel.texts] == ["bottom", "top"]


def test_texts_find_their_places_anew_where_the_panel_has_another_size():
    """Of two points in one place four texts fit around them; of two far apart each has its own."""
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 1000), ylim=(0, 10))
    label_points(figure, panel, [PointLabel(500 + i, 5, f"{i} MHz") for i in range(6)])
    assert [text.get_visible() for text in panel.texts] == [True] * 4 + [False] * 2
    panel.set_xlim(499, 506)
    arrange_labels(figure, panel)
    assert all(text.get_visible() for text in panel.texts)


def test_a_text_is_not_between_points_of_a_column():
    """Midway between two points it could be the text of either: it stands at its point's height."""
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 10), ylim=(0, 10))
    column = [PointLabel(5, y, f"{y} MHz") for y in (4.0, 4.8, 5.6)]
    label_points(figure, panel, column)
    assert [text.get_visible() for text in panel.texts] == [True] * 3
    assert [text.get_va() for text in panel.texts] == ["top", "center", "bottom"]


def test_a_text_does_not_run_between_points_of_another_column():
    figure = Figure(figsize=(6, 4))
    panel = figure.subplots()
    panel.set(xlim=(0, 10), ylim=(0, 10))
    others = [PointLabel(5.8, y, "") for y in (4.0, 6.0)]
    label_points(figure, panel, [PointLabel(5, 5, "10 MHz, 20 ms"), *others])
    assert panel.texts[0].get_ha() == "right"  # its right end: it stands left of its point

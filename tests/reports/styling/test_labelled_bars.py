"""Labels of bars."""

from reports.styling import labelled_bars


def test_a_long_label_is_cut_in_its_name_and_not_in_what_tells_it_apart():
    label = "personalization only (dataset fashion-mnist)"
    assert labelled_bars.shortened(label, 44) == label
    assert labelled_bars.shortened(label, 36) == "personaliza… (dataset fashion-mnist)"
    assert labelled_bars.shortened(label, 25) == "personalization only (da…"  # no room for both
    assert labelled_bars.shortened("a name without anything in brackets", 12) == "a name with…"

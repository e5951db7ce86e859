"""Curves of accuracy and loss."""

from pytest import approx

from reports.figures import learning_curves as curves
from reports.run_data.scheme_grouping import load_schemes


def test_accuracy_curves(drawn, two_schemes):
    seconds, rounds = drawn(curves.accuracy_curves, two_schemes).axes
    assert seconds.lines[0].get_xydata().tolist() == [approx([0.05, 50]), approx([0.1, 90])]
    assert rounds.lines[1].get_xydata().tolist() == [approx([1, 50]), approx([3, 90])]


def test_accuracy_over_bits_and_joules(drawn, two_schemes):
    """10 Mbit up, 20 Mbit down, 0.5 J a round; scheme a is evaluated in rounds 1 and 3 from 0."""
    bits, joules = drawn(curves.accuracy_by_spending, two_schemes).axes
    assert bits.lines[0].get_xydata().tolist() == [approx([60, 50]), approx([120, 90])]
    assert joules.lines[0].get_xydata().tolist() == [approx([1.0, 50]), approx([2.0, 90])]


def test_spending_over_decades_is_logarithmic_with_plain_numbers(drawn, write_run, tmp_path):
    folders = [
        write_run(tmp_path / name, scheme=name, bits_up=bits)
        for name, bits in (("a", 1e5), ("b", 1e9))
    ]
    figure = drawn(curves.accuracy_by_spending, load_schemes(folders))
    figure.draw_without_rendering()
    bits, joules = figure.axes
    assert bits.get_xscale() == "log" and joules.get_xscale() == "linear"
    labels = [label.get_text() for label in bits.get_xticklabels()]
    assert "1000" in labels and not any("$" in label for label in labels)

"""Curves of accuracy and loss."""

from dataclasses import replace

import pytest
from pytest import approx

from reports.figures import learning_curves as curves
from reports.run_data.scheme_grouping import load_schemes
from reports.run_data.statistics.round_curves import any_curve
from reports.styling.figure_style import SCREEN

NAN = float("nan")


def accuracy_against(*axes):
    return lambda schemes, style: curves.learning_curves(schemes, curves.ACCURACY, axes, style)


OVER_TIME, SPENDING = accuracy_against("time", "rounds"), accuracy_against("bits", "energy")


def test_accuracy_curves(drawn, two_schemes):
    seconds, rounds = drawn(OVER_TIME, two_schemes).axes
    assert seconds.lines[0].get_xydata().tolist() == [approx([0.05, 50]), approx([0.1, 90])]
    assert rounds.lines[1].get_xydata().tolist() == [approx([2, 50]), approx([4, 90])]


def test_accuracy_over_bits_and_joules(drawn, two_schemes):
    """10 Mbit up, 20 Mbit down, 0.5 J a round; scheme a is evaluated in rounds 1 and 3 from 0."""
    bits, joules = drawn(SPENDING, two_schemes).axes
    assert bits.lines[0].get_xydata().tolist() == [approx([60, 50]), approx([120, 90])]
    assert joules.lines[0].get_xydata().tolist() == [approx([1.0, 50]), approx([2.0, 90])]


@pytest.mark.slow
def test_spending_over_decades_is_logarithmic_with_plain_numbers(drawn, write_run, tmp_path):
    folders = [
        write_run(tmp_path / name, scheme=name, bits_up=bits)
        for name, bits in (("a", 1e5), ("b", 1e9))
    ]
    figure = drawn(SPENDING, load_schemes(folders))
    figure.draw_without_rendering()
    bits, joules = figure.axes
    assert bits.get_xscale() == "log" and joules.get_xscale() == "linear"
    labels = [label.get_text() for label in bits.get_xticklabels()]
    assert "1000" in labels and not any("$" in label for label in labels)


@pytest.mark.parametrize(("seeds", "dots", "bands"), [(1, 0, 0), (2, 2, 0), (3, 0, 1)])
def test_two_seeds_have_dots_and_three_an_interval(drawn, write_run, tmp_path, seeds, dots, bands):
    for seed in range(seeds):
        write_run(
            tmp_path / "runs" / str(seed), seed=seed, accuracy=(NAN, 0.1, NAN, 0.5 + seed / 10)
        )
    schemes = load_schemes(sorted((tmp_path / "runs").iterdir()))
    (panel,) = drawn(accuracy_against("rounds"), schemes).axes
    assert len(panel.lines) == 1 + dots and len(panel.collections) == bands
    assert [line.get_ydata()[1] for line in panel.lines[1:]] == approx([50.0, 60.0][:dots])


def test_bars_over_devices_only_where_asked(two_schemes):
    for style, bars in ((SCREEN, 0), (replace(SCREEN, device_bars=True), 2)):
        (panel,) = accuracy_against("rounds")(two_schemes, style).axes
        assert len(panel.containers) == bars


def test_an_axis_takes_the_scale_that_is_asked_for(two_schemes):
    style = replace(SCREEN, x_scale="log", y_scale="log")
    (panel,) = accuracy_against("time")(two_schemes, style).axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")


def test_an_interval_of_losses_is_cut_at_zero_and_one_of_a_metric_is_not(
    drawn, write_run, tmp_path
):
    """0.1, 0.1 and 0.9 at the end: a mean of 0.37 with an interval of 1.15 to both sides."""
    runs = [
        write_run(
            tmp_path / str(seed), seed=seed, latency_s=(0.01,) * 2, accuracy=(0.05, final),
            gain=(0.95, 1 - final),
        )
        for seed, final in enumerate((0.9, 0.9, 0.1))
    ]  # fmt: skip
    schemes = load_schemes(runs)
    for shown, least in ((curves.LOSS, 0.0), (curves.own_metric("gain"), -0.78)):
        figure = drawn(
            lambda s, style, y=shown: curves.learning_curves(s, y, ["rounds"], style), schemes
        )
        low, high = figure.axes[0].get_ylim()
        assert high > 0.95 and (low == 0 if least == 0 else low < least)


@pytest.mark.parametrize("values", [(-3.0, -1.0), (-3.0, 1.0)])
def test_a_loss_of_ones_own_may_lie_below_zero(drawn, scheme_of, values):
    scheme = scheme_of(loss=(NAN, values[0], NAN, values[1]))
    losses = drawn(
        lambda s, style: curves.learning_curves(s, curves.LOSS, ["rounds"], style), [scheme]
    )
    low, high = losses.axes[0].get_ylim()
    assert low < -3 and high > values[1]


def test_losses_that_are_all_infinite_have_no_figure(drawn, scheme_of):
    """A mean over seeds is inf where training diverged with one of them."""
    diverged = scheme_of(loss=(NAN, float("inf"), NAN, float("inf")))

    def losses(schemes, style):
        return curves.learning_curves(schemes, curves.LOSS, ["time", "rounds"], style)

    assert not any_curve([diverged], "loss")
    first, _ = drawn(losses, [diverged, scheme_of(scheme="b")]).axes
    assert first.lines[1].get_ydata().tolist() == [approx(0.5), approx(0.1)]

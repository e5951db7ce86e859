"""What more band or time would buy, from slopes that were written down by hand."""

import csv
import io
from dataclasses import replace

from pytest import approx

from reports.figures import shadow_prices as worth
from reports.run_data.scheme_grouping import load_schemes
from reports.styling.figure_style import SCREEN


def test_points_per_mhz_and_per_ms(tmp_path, write_run):
    """Of two devices served, a sum that falls by 2e-8 / Hz is a mean of 1 point per MHz less."""
    slopes = {0: (-2e-8, -40.0), 1: (-6e-8, -80.0)}
    folders = [
        write_run(tmp_path / str(seed), seed=seed, pruning_per_hz=hz, pruning_per_s=s)
        for seed, (hz, s) in slopes.items()
    ]
    schemes = load_schemes(folders)
    figure = worth.shadow_prices(schemes, SCREEN)
    per_mhz, per_ms = (line for panel in figure.axes for line in panel.lines)
    assert per_mhz.get_ydata().tolist() == approx([2.0] * 4)  # 1 and 3 points
    assert per_ms.get_ydata().tolist() == approx([3.0] * 4)  # 2 and 4 points
    table = worth.shadow_price_table(schemes)
    assert [column.title for column in table.columns[2:]] == ["Points per MHz", "Points per ms"]
    assert table.cells()[0] == ["joint", "1", "2.000", "3.000"]


def test_the_data_are_in_si_units(tmp_path, write_run):
    """They were points per MHz and per ms, 1e8 and 0.1 times the slopes of rounds.csv."""
    folder = write_run(tmp_path / "run", pruning_per_hz=-2e-8, pruning_per_s=-40.0)
    (row, *_) = csv.DictReader(io.StringIO(worth.shadow_price_table(load_schemes([folder])).csv()))
    assert [*row] == ["scheme", "round", "rho_fall_per_hz", "rho_fall_per_s"]
    assert float(row["rho_fall_per_hz"]) == approx(1e-8)  # of two devices served
    assert float(row["rho_fall_per_s"]) == approx(20.0)


def test_the_curves_have_the_scales_that_a_report_asks_for(tmp_path, write_run):
    """Falls of 1 and of 1000 points were drawn on a linear axis with y_scale=log."""
    folder = write_run(tmp_path / "run", pruning_per_hz=(-2e-8, -2e-5) * 2, pruning_per_s=-40.0)
    look = replace(SCREEN, x_scale="log", y_scale="log")
    for panel in worth.shadow_prices(load_schemes([folder]), look).axes:
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        low, high = panel.get_ylim()
        (line,) = panel.lines
        assert 0 < low < min(line.get_ydata()) and max(line.get_ydata()) < high


def test_where_jobs_overlap_the_slopes_are_of_the_jobs_handed_out(tmp_path, write_run):
    """Four jobs were handed out in the version, two of them used: 1 point per MHz of each."""
    folder = write_run(tmp_path / "run", pruning_per_hz=-4e-8, pruning_per_s=-40.0, dispatched=4)
    table = worth.slopes(load_schemes([folder])[0])
    assert table["pruning_per_hz"].tolist() == approx([1e-8] * 4)


def test_allocators_without_slopes_have_no_figure(tmp_path, write_run):
    nan = float("nan")
    unknown = load_schemes([write_run(tmp_path / "nan", pruning_per_hz=nan, pruning_per_s=nan)])
    older = load_schemes([write_run(tmp_path / "older")])
    assert not worth.any_slopes(unknown) and not worth.any_slopes(older)
    assert worth.shadow_price_table(older).rows == ()

"""Colours, markers and dashes of schemes."""

import pytest

from reports.run_data.scheme_grouping import load_schemes
from reports.styling import colours_and_markers as colours


@pytest.mark.slow
def test_looks_are_fixed_per_scheme_and_all_different(tmp_path, write_run, two_schemes):
    own = [
        write_run(tmp_path / str(i), scheme=f"own {i}", method="./x.py:X", solver="kkt")
        for i in range(11)
    ]
    many = colours.scheme_styles(two_schemes + load_schemes(own))
    assert len(set(many.values())) == 13
    roles = "{b: proposed, a: pruning-only}"
    asked = f"report: {{beside: liu, schemes: {roles}}}"
    named = [write_run(tmp_path / x, scheme=x, extra=asked) for x in ("a", "b", "c")]
    both, pruning = (colours.scheme_styles(load_schemes(each)) for each in (named, named[:1]))
    assert both["b"] == colours.SeriesStyle("#0072B2", "o", "-")
    assert both["a"] == pruning["a"] and both["c"].colour == "#E69F00"


@pytest.mark.parametrize("roles", ["{}", "{own 3: pruning-only, own 7: proposed}"])
def test_points_without_a_line_are_told_apart_beyond_ten_series_too(tmp_path, write_run, roles):
    """Dashes alone told the eleventh from the first: on the Pareto front both were one point."""
    extra = f"report: {{beside: liu, schemes: {roles}}}"
    own = [write_run(tmp_path / str(i), scheme=f"own {i}", extra=extra) for i in range(23)]
    points = [
        (look.colour, look.marker) for look in colours.series_styles(load_schemes(own)).values()
    ]
    assert len(set(points)) == 23


@pytest.mark.slow
def test_in_grey_every_line_has_its_own_dashes(tmp_path, write_run):
    folders = [write_run(tmp_path / str(i), scheme=f"own {i}", method="./x.py:X") for i in range(8)]
    schemes = load_schemes(folders)
    for made in (
        colours.scheme_styles(schemes, grey=True),
        colours.series_styles(schemes, grey=True),
    ):
        assert len({str(look.dashes) for look in made.values()}) == 8
    assert (
        len({str(look.dashes) for look in colours.scheme_styles(schemes).values()}) == 1
    )  # colours do it on a screen

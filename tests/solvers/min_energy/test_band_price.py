"""The two searches for the price of the band."""

import pytest
from pytest import approx

from solvers import UncertifiedError, allocate
from solvers.min_energy import band_price as energy_price
from tests.solvers.min_energy.energy_cells import cell, instance


@pytest.mark.slow
def test_without_a_step_together_there_is_the_search_one_by_one(monkeypatch):
    """The same answers by the slower search alone."""
    problems = [instance(seed, 6, bool(seed % 2), (0.3, 0.95)[seed % 3 == 0]) for seed in range(24)]
    usual = [allocate(p, "energy") for p in problems]
    monkeypatch.setattr(energy_price, "newton_search", lambda radio, low: None)
    for a, b in zip(usual, (allocate(p, "energy") for p in problems), strict=True):
        assert b.certificate.gap <= 1e-11 and b.objective == approx(a.objective, rel=1e-12)
        assert b.multiplier == approx(a.multiplier, rel=1e-9) and b.share == approx(
            a.share, rel=1e-9, abs=1e-15
        )


@pytest.mark.slow
@pytest.mark.parametrize("density", [False, True])
def test_most_problems_are_solved_together(density, monkeypatch):
    """Without a turn of the slower search, which takes some five times as long."""
    problems = [instance(seed, 8, density, 0.3) for seed in range(40)]
    slow, found = energy_price.bracket_search, []
    monkeypatch.setattr(energy_price, "bracket_search", lambda *a: found.append(a) or slow(*a))
    for p in problems:
        allocate(p, "energy")
    assert len(found) <= 4


def test_turns_that_step_to_and_fro_end(monkeypatch):
    """Two devices at the bend of full power: `together` gives up and the answer is the other
    search's.
    """
    monkeypatch.setattr(energy_price, "TURNS", 1)
    a = allocate(cell([1e6, 5e5], [4e8, 2e8], 0.9, [100.0, 30.0]), "energy")
    assert a.certificate.gap < 1e-13


def test_what_the_first_search_gives_and_is_refused_is_searched_for_in_the_other_way(monkeypatch):
    p = cell([1e6, 5e5], 4e8, 0.9, [100.0, 30.0])
    expected = allocate(p, "energy")
    together = energy_price.newton_search

    def off(radio, low):
        share, air_s, price = together(radio, low)
        return share[::-1], air_s, price

    monkeypatch.setattr(energy_price, "newton_search", off)
    assert allocate(p, "energy").objective == approx(expected.objective, rel=1e-9)
    monkeypatch.setattr(energy_price, "bracket_search", off)
    with pytest.raises(UncertifiedError):
        allocate(p, "energy")

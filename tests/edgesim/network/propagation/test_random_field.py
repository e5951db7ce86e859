"""Fields by position: distribution over seeds, correlation over distance, agreement at a place."""

import numpy as np
import pytest

from edgesim.network.propagation import random_field
from edgesim.network.propagation.random_field import CHUNK, RandomField
from edgesim.network.propagation.site_fields import FieldsOfSite
from edgesim.seeds import Seeds


@pytest.mark.slow
def test_devices_50_m_apart_share_exp_minus_1_of_their_shadow():
    """Shadowing of UMa without line of sight, 4,000 seeds: 0.368."""
    places = np.array([[300.0, 40.0], [350.0, 40.0]])
    z = np.array([FieldsOfSite(Seeds(s), "uma").shadowing["nlos"].at(places) for s in range(4000)])
    assert np.corrcoef(z.T)[0, 1] == pytest.approx(np.exp(-1.0), abs=0.04)
    assert z.mean() == pytest.approx(0.0, abs=0.04) and z.std() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(("waves", "kurtosis"), [(1, 1.5), (2, 2.25), (6, 2.75)])
def test_the_kurtosis_of_few_waves(monkeypatch, waves, kurtosis):
    """3 - 1.5 / N; with a variance of 1 it is E[Z^4], here over places of one field."""
    monkeypatch.setattr(random_field, "WAVES", waves)
    places = np.random.default_rng(0).uniform(-1e5, 1e5, (100_000, 2))
    z = RandomField(Seeds(1), "field/sf/los", 0, 37.0).at(places)
    assert (z**2).mean() == pytest.approx(1.0, abs=0.02)
    assert (z**4).mean() == pytest.approx(kurtosis, abs=0.06)


def test_the_same_place_has_the_same_value_to_the_last_bit():
    """Alone, among others, and in another chunk."""
    field = RandomField(Seeds(1), "field/sf/los", 0, 37.0)
    places = np.random.default_rng(0).normal(0, 300, (CHUNK + 3, 2))
    everybody = field.at(places)
    assert field.at(places[-2:]).tolist() == everybody[-2:].tolist()
    assert field.at(places[:1]).tolist() == everybody[:1].tolist()
    assert RandomField(Seeds(1), "field/sf/los", 0, 37.0).at(places[5:6])[0] == everybody[5]
    assert RandomField(Seeds(1), "field/sf/los", 1, 37.0).at(places[5:6])[0] != everybody[5]


def test_values_are_those_of_the_sum_of_waves_in_double_precision():
    """Also kilometres away, where phases are thousands of turns: they are reduced before rounding.

    Single precision keeps 1e-3 of a turn there.
    """
    field, (x_m, y_m) = RandomField(Seeds(3), "field/k", 2, 4.0), (-4321.5, 2876.25)
    u = Seeds(3).stream("field/k", device=2).random((3, 128))
    wavenumber, angle = np.sqrt((1 - u[0]) ** -2 - 1) / 4.0, 2 * np.pi * u[1]
    phase = wavenumber * (np.cos(angle) * x_m + np.sin(angle) * y_m) + 2 * np.pi * u[2]
    expected = np.sqrt(2 / 128) * np.cos(phase).sum()
    assert field.at(np.array([[x_m, y_m]]))[0] == pytest.approx(expected, abs=5e-6)

"""Scenarios as dotted keys, and the values of a key as a typed column."""

import math

import pytest

from edgesim.results.flat_scenario import flatten, possible_units, si_column, unit_of


def test_seed_and_provenance_are_no_configuration():
    assert flatten({"seed": 1, "provenance": {"git": "x"}, "a": {"b": 2, "seed": 3}}) == {
        "a.b": "2",
        "a.seed": "3",
    }


def test_lists_of_sections_are_flattened_and_other_lists_are_not():
    scenario = {
        "seed": 3,
        "sweep": {"seeds": "0-4"},
        "devices": [{"count": 2, "tx_power": "28 dBm"}],
        "e": [0.8, 0.9],
    }
    assert flatten(scenario) == {
        "devices.0.count": "2",
        "devices.0.tx_power": "28 dBm",
        "e": "[0.8, 0.9]",
    }
    assert flatten({"a": None}) == {"a": "none"}
    # as a scenario, sweep.json and load_sweep have them
    assert flatten({"a": True, "b": {"c": False}}) == {"a": "true", "b.c": "false"}


def test_units_come_from_the_schema_whatever_the_position():
    assert (unit_of("devices.3.tx_power"), unit_of("budget.latency_threshold")) == ("W", "s")
    assert possible_units("network.noise") == ["W", "W/Hz"]
    assert possible_units("learning.method.lr") == possible_units("rounds") == [""]


@pytest.mark.parametrize(
    ("key", "texts", "values", "unit"),
    [
        ("budget.latency_threshold", ["15ms", "0.02 s", "none"], [0.015, 0.02, None], "s"),
        ("budget.latency_threshold", ["~", "0.02 s", "null"], [None, 0.02, None], "s"),
        ("network.noise", ["-110 dBm", "1e-13 W"], [1e-14, 1e-13], "W"),
        ("network.noise", ["-170 dBm/Hz", None], [1e-20, None], "W/Hz"),
        ("devices.0.tx_power", ["1 W", None], [1.0, None], "W"),
        ("rounds", ["10", "20"], [10, 20], ""),
        ("rounds", ["10", str(2**63), "1" + 399 * "0"], [10, 2.0**63, math.inf], ""),
        ("learning.method.lr", ["0.1", "1e-3"], [0.1, 0.001], ""),
        ("schemes.joint.budget.latency_threshold", ["15ms", None], [0.015, None], "s"),
        ("schemes.v1.5.devices.0.tx_power", ["20 dBm", "1 W"], [0.1, 1.0], "W"),
        ("evaluate.every", ["60 s", "2min", None], [60.0, 120.0, None], "s"),
        ("evaluate.every", ["1", "5"], [1, 5], ""),
    ],
)
def test_values_of_a_key_are_numbers_in_si_with_one_unit(key, texts, values, unit):
    found, its_unit = si_column(key, texts)
    assert (found, its_unit) == (pytest.approx(values), unit)


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("network.noise", ["-110 dBm", "-170 dBm/Hz"]),  # a power and a density
        ("evaluate.every", ["5", "60 s"]),  # rounds and a time
        ("learning.method.rho_max", ["0.5", "auto"]),
        ("allocation.solver", ["kkt", "equal"]),
        ("devices.0.cpu.frequency", ["3 GHz", "{uniform: [1 GHz, 3 GHz]}"]),
        ("budget.latency_threshold", ["none"]),
    ],
)
def test_values_that_are_no_numbers_of_one_unit_stay_texts(key, texts):
    assert si_column(key, texts) == (texts, "")

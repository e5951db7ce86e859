"""Temperature of a processor in closed form."""

import math

import pytest

from edgesim.network.hardware.thermal import Thermal

PHONE = Thermal(10.0, 5.0, ambient_c=25.0, limit_c=75.0, hysteresis_k=5.0, throttled_hz=1e9)


def test_time_to_throttle():
    """-R C ln(1 - (T_max - T_amb) / (R P)) with 10 K/W, 5 J/K, 6 W, 25 to 75 degC."""
    seconds = PHONE.seconds_until_it_turns(25.0, 6.0, throttled=False)
    assert seconds == pytest.approx(89.587973, abs=5e-7)
    assert PHONE.after(25.0, 6.0, seconds) == pytest.approx(75.0, abs=1e-12)


def test_a_power_that_it_can_bear_never_throttles():
    assert PHONE.seconds_until_it_turns(25.0, 5.0, throttled=False) == math.inf
    assert PHONE.seconds_until_it_turns(70.1, 5.0, throttled=True) == math.inf


def test_cooling_from_the_limit():
    """From 75 to 70 degC without power: 50 s x ln(50 / 45)."""
    seconds = PHONE.seconds_until_it_turns(75.0, 0.0, throttled=True)
    assert seconds == pytest.approx(50.0 * math.log(50.0 / 45.0), rel=1e-12)


def test_the_closed_form_solves_the_differential_equation():
    """C dT/dt = P - (T - T_amb) / R in small steps."""
    temperature, step = 40.0, 1e-3
    for _ in range(20_000):
        temperature += step * (3.0 - (temperature - 25.0) / 10.0) / 5.0
    assert PHONE.after(40.0, 3.0, 20.0) == pytest.approx(temperature, abs=1e-3)

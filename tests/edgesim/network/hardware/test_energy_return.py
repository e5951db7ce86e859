"""When a battery holds enough again: instants by hand."""

import math
from dataclasses import replace

import pytest

from edgesim.network.hardware.battery import Battery, Charging
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.hardware.device_state import SENDING, WAITING, DeviceState
from edgesim.network.hardware.energy_return import enough_again_s
from edgesim.network.hardware.modem import Modem

ALWAYS, DAILY = Charging(2.0), Charging(4.0, period_s=20.0, from_s=5.0, lasts_s=10.0)


def waiting(charging, level_j, idle_power_w=1.0, alive=True, **hardware):
    """A device with a battery of 100 J, back at 20 J, at second 0."""
    battery = Battery(100.0, resume=0.2, charging=charging)
    about = DeviceHardware(idle_power_w=idle_power_w, battery=battery, **hardware)
    return DeviceState(about, battery_j=level_j, alive=alive)


@pytest.mark.parametrize(
    "state, needed_j, again_s",
    [
        (waiting(ALWAYS, 10.0), 40.0, 30.0),  # 1 W more than it uses
        (waiting(ALWAYS, 10.0, alive=False), 0.0, 5.0),  # off, it uses none
        (waiting(ALWAYS, 10.0, alive=False), 40.0, 25.0),  # 5 s off, 20 s on
        (waiting(ALWAYS, 50.0), 40.0, 0.0),
        (waiting(ALWAYS, 10.0), 101.0, math.inf),  # more than it can hold
        (waiting(ALWAYS, 30.0, idle_power_w=2.0), 40.0, math.inf),
        (waiting(ALWAYS, 30.0, idle_power_w=3.0), 40.0, math.inf),  # it dies and returns at 20 J
        (waiting(Charging(), 30.0), 40.0, math.inf),
        (waiting(Charging(), 0.0, alive=False), 0.0, math.inf),
        # 10 J at the 5th second, 3 W more for 10 s, then 1 W less for 10 s: 40, 30, 60 J
        (waiting(DAILY, 15.0), 37.0, 14.0),
        (waiting(DAILY, 15.0), 45.0, 30.0),
        (waiting(DAILY, 0.0, alive=False), 0.0, 10.0),
        # 2 W less outside, 2 W more in the window, from 10 J on: 30, 10 J as before
        (waiting(DAILY, 20.0, idle_power_w=2.0), 29.0, 14.5),
        (waiting(DAILY, 20.0, idle_power_w=2.0), 31.0, math.inf),
    ],
)
def test_instants_by_hand(state, needed_j, again_s):
    before = replace(state)
    assert enough_again_s(state, needed_j) == pytest.approx(again_s, rel=1e-12)
    assert (state.time_s, state.battery_j) == (before.time_s, before.battery_j)


def test_the_tail_of_the_modem_delays_it_and_is_no_reason_to_give_up():
    """3 W for 20 s take more than the first window brings; later each period brings 20 J."""
    modem = Modem(0.0, 1.0, tail_s=20.0, tail_power_w=3.0, sleep_power_w=0.0)
    state = waiting(DAILY, 60.0, modem=modem)
    state.begin(SENDING, 0.0)
    state.begin(WAITING, 0.0)
    # - 4 W until 5 s: 40 J, as many at 15 s, 20 at 20 s; - 1 W: 15; + 3 W: 45 at 35 s, 35 at 45 s
    assert enough_again_s(state, 64.0) == pytest.approx(45.0 + 29.0 / 3.0, rel=1e-12)


def test_at_that_instant_it_is_enough_to_the_last_bit():
    for level_j in (0.1, 1.0 / 3.0, 7.7, 19.9):
        state = waiting(replace(ALWAYS, power_w=1.0 + 1e-6), level_j)
        assert state.at(enough_again_s(state, 20.1)).battery_j >= 20.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "idle_power_w, alive, needed_j, again_s",
    [
        # 1 J a period: 49,998.5 J as that window begins, and 2 W more in it
        (1.0, True, 50_000.0, 2.0 * 49_998 + 0.75),
        (5.0, False, 0.0, 2.0 * 6_666 + 0.5),  # 3 J a period while it is off
    ],
)
def test_many_short_charging_windows_are_not_played_one_by_one(
    monkeypatch, idle_power_w, alive, needed_j, again_s
):
    """A second of two is charged, with 3 W."""
    charging = Charging(3.0, period_s=2.0, lasts_s=1.0)
    battery = Battery(1e5, resume=0.2, charging=charging)
    about = DeviceHardware(idle_power_w=idle_power_w, battery=battery)
    state, at, asked = DeviceState(about, battery_j=0.5, alive=alive), DeviceState.at, []
    monkeypatch.setattr(DeviceState, "at", lambda self, t: asked.append(t) or at(self, t))
    found_s = enough_again_s(state, needed_j)
    monkeypatch.undo()
    assert len(asked) < 200
    assert found_s == pytest.approx(again_s, rel=1e-9)
    there = state.at(found_s)
    assert there.alive and there.battery_j >= needed_j

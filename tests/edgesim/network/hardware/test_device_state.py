"""One device over time: exact events by hand, and conservation of its joules."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.hardware.background_load import BackgroundLoad
from edgesim.network.hardware.battery import Battery, Charging
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.hardware.device_state import (
    COMPUTING,
    CRASHED,
    RECEIVING,
    SENDING,
    WAITING,
    DeviceState,
    Snapshot,
)
from edgesim.network.hardware.modem import Modem
from edgesim.network.hardware.thermal import Thermal
from edgesim.network.tdd_service import MeanAirTime, TddService
from edgesim.seeds import Seeds

MODEM = Modem(0.1, 0.35, tail_s=0.1, tail_power_w=0.1, sleep_power_w=0.001)
FULL = DeviceHardware(
    capacitance=1e-28,
    static_power_w=0.2,
    idle_power_w=0.05,
    receive_power_w=0.3,
    modem=MODEM,
    thermal=Thermal(10.0, 0.5, 25.0, 40.0, 5.0, 1e9),
    load=BackgroundLoad(0.5, 1.0, 0.4, Seeds(3), 0),
    battery=Battery(30.0, 0.5, 0.2, Charging(0.4, 20.0, 5.0, 8.0)),
)


def played(state, *activities):
    """Activities (name, seconds, amounts) one after the other; the joules of each."""
    joules = []
    for name, seconds, amounts in activities:
        start_s = state.time_s
        state.begin(name, start_s, **amounts)
        state.advance(start_s + seconds)
        joules.append(state.joules)
    return joules


def test_a_battery_of_100_joules_at_5_watts_dies_at_20_seconds():
    state = DeviceState(DeviceHardware(idle_power_w=5.0, battery=Battery(100.0)))
    assert state.next_event_s() == 20.0
    assert state.at(30.0).off_s == 10.0  # a look ahead, which leaves nothing behind
    assert state.take_pieces(50.0) == [("idle", 0.0, 20.0, 100.0), ("off", 20.0, 50.0, 0.0)]
    assert (state.used_j, state.battery_j, state.off_s) == (100.0, 0.0, 30.0)


def test_a_device_that_crashes_is_off_until_it_is_asked_and_goes_on_charging():
    """4 s at 2 W of charging alone, without the modem's tail; then 10 s at 5 W and its sleep."""
    battery = Battery(100.0, charging=Charging(2.0))
    state = DeviceState(DeviceHardware(idle_power_w=5.0, battery=battery, modem=MODEM))
    state.begin(SENDING, 0.0, tx_power_w=0.0)
    state.battery_j = 70.0
    state.begin(CRASHED, 0.0)
    assert state.take_pieces(4.0) == [("off", 0.0, 4.0, 0.0)]
    assert (state.battery_j, state.off_s, state.used_j) == (78.0, 4.0, 0.0)
    ((phase, *_, joules),) = state.take_pieces(14.0)
    assert phase == "idle" and joules == pytest.approx(10.0 * 5.001)
    assert state.battery_j == pytest.approx(78.0 + 20.0 - joules)


def test_a_device_that_died_returns_at_its_level():
    """2 W of harvest: at 5 W it lasts 100 / 3 s, and 20 J are there 10 s later."""
    battery = Battery(100.0, resume=0.2, charging=Charging(2.0))
    state = DeviceState(DeviceHardware(idle_power_w=5.0, battery=battery))
    died, off, again = state.take_pieces(50.0)
    assert died == ("idle", 0.0, 100.0 / 3.0, pytest.approx(500.0 / 3.0))
    assert (off.phase, off.end_s) == ("off", pytest.approx(100.0 / 3.0 + 10.0))
    assert again.energy_j == pytest.approx(5.0 * (50.0 - off.end_s))
    assert state.charged_j == pytest.approx(100.0)


def test_a_full_battery_takes_no_more_than_the_device_uses():
    battery = Battery(10.0, start=0.9, charging=Charging(2.0))
    state = DeviceState(DeviceHardware(idle_power_w=1.0, battery=battery))
    state.advance(5.0)  # 1 W net fills it after 1 s; then 1 W goes to the device
    assert (state.battery_j, state.charged_j) == (10.0, pytest.approx(2.0 + 4.0))


def test_a_battery_that_nobody_charges_takes_in_nothing():
    """Exactly: rounding below zero would be a table that cannot be read back."""
    state = DeviceState(DeviceHardware(idle_power_w=0.05, battery=Battery(20.0, start=0.62)))
    charged_j = []
    for i in range(1, 20):
        state.advance(0.0137 * i)
        charged_j.append(state.charged_j)
    assert charged_j == [0.0] * 19


def test_windows_of_charging():
    window = Charging(3.0, period_s=10.0, from_s=4.0, lasts_s=2.0)
    assert [window.power_at_w(t) for t in (0.0, 4.0, 5.9, 6.0, 14.0, 16.0)] == [0, 3, 3, 0, 3, 0]
    assert [window.next_change_s(t) for t in (0.0, 4.0, 6.0, 15.0)] == [4.0, 6.0, 14.0, 16.0]


def test_throttling_at_its_instant():
    """6 W = 6e-27 x (1e9)^3; the work after 89.587973 s is at half the clock."""
    hot = Thermal(10.0, 5.0, 25.0, 75.0, 5.0, throttled_hz=5e8)
    state = DeviceState(DeviceHardware(capacitance=6e-27, thermal=hot))
    state.begin(COMPUTING, 0.0, clock_hz=1e9, cycles=1e11)
    assert state.next_event_s() == pytest.approx(89.587973, abs=5e-7)
    state.advance(89.6)
    assert state.throttled
    # At an eighth of the power it cools to 70 degC, and runs at 1 GHz again.
    cooling_s = state.next_event_s() - 89.587973
    assert cooling_s == pytest.approx(-50.0 * math.log((70.0 - 32.5) / (75.0 - 32.5)), abs=1e-6)
    assert state.cycles_left == pytest.approx(1e11 - 89.587973e9 - (89.6 - 89.587973) * 5e8)


def test_sending_then_tail_then_sleep():
    """P_c + p / eta while sending; 100 ms of listening on beside the idle power, then sleep."""
    state = DeviceState(DeviceHardware(idle_power_w=0.05, modem=MODEM))
    sent, waited = played(state, (SENDING, 2.0, {"tx_power_w": 0.2}), (WAITING, 1.0, {}))
    assert sent == pytest.approx(2.0 * (0.1 + 0.2 / 0.35))
    assert waited == pytest.approx(0.05 + 0.1 * 0.1 + 0.9 * 0.001)


def test_a_battery_that_sends_in_slots_dies_in_one():
    """2 W on the air, from 2 to 4 of every 4 s, and 0.5 W else: 1 + 4 + 1 J by 6 s, 3 J at 7.5 s.
    At the mean rate it is 1.25 W, and 9 J last 7.2 s.
    """
    hardware = DeviceHardware(idle_power_w=0.5, battery=Battery(9.0))
    died = []
    for air_time in (TddService(4.0, 2.0, 4.0), MeanAirTime(0.5)):
        state = DeviceState(hardware)
        state.begin(SENDING, 0.0, tx_power_w=2.0, air_time=air_time)
        state.advance(10.0)
        died.append(10.0 - state.off_s)
        assert (state.battery_j, state.joules) == (0.0, pytest.approx(9.0))
    assert died == pytest.approx([7.5, 7.2])


@pytest.mark.parametrize("charging_w", [0.0, 0.6, 3.0])
def test_slots_are_looked_at_only_where_a_battery_may_be_empty_or_full(charging_w):
    """A minute of slots of 4 ms costs a few events, and the level that slot by slot comes out."""
    air_time = TddService(0.004, 0.002, 0.004)
    level_j, events = {}, 0
    for start in (0.5, 1.0):
        battery = Battery(1000.0, start=start, charging=Charging(charging_w))
        state = DeviceState(DeviceHardware(idle_power_w=0.5, battery=battery))
        state.begin(SENDING, 0.0, tx_power_w=2.0, air_time=air_time)
        while state.next_event_s() < 60.0:
            state.advance(state.next_event_s())
            events += start < 1.0
        state.advance(60.0)
        level_j[start] = state.battery_j
        assert state.joules == pytest.approx(30.0 * 2.0 + 30.0 * 0.5)
    assert events < 10
    assert level_j[0.5] == pytest.approx(500.0 - 75.0 + 60.0 * charging_w)
    # a full one takes nothing while more comes in than it gives, 0.1 W between slots of 0.6 W
    drained_j = 30.0 * max(2.0 - charging_w, 0.0) + 30.0 * max(0.5 - charging_w, 0.0)
    regained_j = max(charging_w - 0.5, 0.0) * 30.0 if charging_w < 2.0 else 0.0
    assert level_j[1.0] == pytest.approx(1000.0 - drained_j + regained_j, abs=0.01)


def test_computing_by_hand():
    """kappa f^2 a cycle and the static power; the last cycle is done after 0.5 s."""
    state = DeviceState(DeviceHardware(capacitance=1e-28, static_power_w=0.2))
    state.begin(COMPUTING, 1.0, clock_hz=2e9, cycles=1e9)
    assert state.next_event_s() == 1.5
    state.advance(1.5)
    assert state.cycles_left == 0.0
    assert state.joules == pytest.approx(1e-28 * 4e18 * 1e9 + 0.2 * 0.5)


def test_work_is_the_integral_of_the_speed_beside_other_programs():
    """Busy stretches leave 0.4: the cycles of 30 s are those of the load's own share."""
    load = BackgroundLoad(0.5, 1.0, 0.4, Seeds(3), 0)
    state = DeviceState(DeviceHardware(load=load))
    state.begin(COMPUTING, 0.0, clock_hz=1e9, cycles=1e12)
    state.advance(30.0)
    instants = (np.arange(60_000) + 0.5) * 5e-4
    expected = 5e-4 * 1e9 * sum(load.share(t) for t in instants.tolist())
    assert 1e12 - state.cycles_left == pytest.approx(expected, rel=3e-4)


ACTIVITIES = st.lists(
    st.tuples(
        st.sampled_from([WAITING, RECEIVING, COMPUTING, SENDING]),
        st.floats(0.0, 9.0),
    ),
    min_size=1,
    max_size=8,
)


def amounts_of(name):
    if name == COMPUTING:
        return {"clock_hz": 2.5e9, "cycles": 1e10}
    return {"tx_power_w": 0.2} if name == SENDING else {}


def run(hardware, activities, cuts):
    """The state after some activities, each looked at in ``cuts`` places."""
    state, joules = DeviceState(hardware), []
    for name, seconds in activities:
        start_s = state.time_s
        state.begin(name, start_s, **amounts_of(name))
        for i in range(1, cuts + 1):
            state.advance(start_s + seconds * i / cuts)
        joules.append(state.joules)
    return state, joules


@settings(max_examples=60, deadline=None)
@given(ACTIVITIES)
def test_joules_are_conserved_and_do_not_depend_on_who_looks(activities):
    """The battery's balance, and the same state whether it is advanced at once or in 7 steps."""
    one, _ = run(FULL, activities, 1)
    many, _ = run(FULL, activities, 7)
    battery = FULL.battery
    balance_j = battery.start * battery.capacity_j + one.charged_j - one.used_j
    assert one.battery_j == pytest.approx(balance_j, abs=1e-9)
    assert 0.0 <= one.battery_j <= battery.capacity_j
    for name in Snapshot._fields:
        assert getattr(one, name) == pytest.approx(getattr(many, name), rel=1e-9, abs=1e-9), name


@settings(max_examples=20, deadline=None)
@given(ACTIVITIES)
def test_joules_are_the_integral_of_the_power(activities):
    """The power of a hundred instants of each activity, summed."""
    state, total, peak = DeviceState(replace(FULL, battery=None)), 0.0, 0.0
    for name, seconds in activities:
        start_s = state.time_s
        state.begin(name, start_s, **amounts_of(name))
        step = seconds / 100
        for i in range(100):
            middle = state.at(start_s + (i + 0.5) * step)
            total, peak = total + middle.power_w * step, max(peak, middle.power_w)
        state.advance(start_s + seconds)
    # An event within a step is off by at most the power of half of it.
    assert state.used_j == pytest.approx(total, abs=peak * 9.0 / 100 * 12 * len(activities))


def test_a_snapshot_goes_on_to_the_last_bit():
    whole = DeviceState(FULL)
    played(whole, (SENDING, 0.7, {"tx_power_w": 0.2}), (WAITING, 3.3, {}))
    whole.take_pieces(whole.time_s)
    again = DeviceState.restored(FULL, whole.snapshot())
    rest = (COMPUTING, 4.1, {"clock_hz": 2.5e9, "cycles": 1e10}), (WAITING, 40.0, {})
    assert played(whole, *rest) == played(again, *rest)
    assert whole.snapshot() == again.snapshot()


@pytest.mark.slow
@given(
    period_s=st.integers(1, 300).map(lambda n: n / 10),
    from_s=st.integers(0, 300).map(lambda n: n / 10),
)
def test_windows_of_decimal_periods_start_and_end_one_after_the_other(period_s, from_s):
    charging = Charging(0.3, period_s, from_s, lasts_s=period_s / 2)
    time_s, powers = -1.0, []
    for n in range(200):
        time_s, before_s = charging.next_change_s(time_s), time_s
        assert time_s > before_s
        powers.append(charging.power_at_w(time_s))
        assert time_s == pytest.approx(from_s + n * period_s / 2, rel=1e-12)
    assert powers == [0.3, 0.0] * 100


def test_looking_often_passes_no_event_twice_and_changes_no_number(monkeypatch):
    """A minute beside other programs that come and go: 400 looks cost about as much as one."""
    amounts = {"clock_hz": 2e9, "cycles": 4e10}
    looked_at, left_alone = DeviceState(FULL), DeviceState(FULL)
    for state in (looked_at, left_alone):
        state.begin(COMPUTING, 0.0, **amounts)
    passed = []
    original = DeviceState._happens
    monkeypatch.setattr(DeviceState, "_happens", lambda s, kind: passed.append(original(s, kind)))
    left_alone.advance(60.0)
    alone = len(passed)
    for time_s in np.linspace(0.0, 60.0, 401):
        looked_at.pass_events(time_s)
        assert looked_at.battery_at_j(time_s) == looked_at.at(time_s).battery_j
    assert alone > 30  # events, or there was nothing to pass
    assert len(passed) - alone <= alone + 401
    looked_at.advance(60.0)
    assert looked_at == left_alone

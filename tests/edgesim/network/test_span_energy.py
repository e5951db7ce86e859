"""Joules: by hand for one device, and as the integral of the power over the timeline."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.span_energy import compute_j, squared
from fl.contracts import Grant
from tests.edgesim.network.fleets import make_fleet


def fleet(num_devices, failure_rate_hz=0.0):
    steps = np.arange(num_devices)
    return make_fleet(
        tx_power_w=0.2 + 0.1 * steps,
        cpu_hz=1e9 * (2 + steps),
        cycles_per_weight=5,
        capacitance=1e-28 * (1 + steps),
        idle_power_w=0.05 * (1 + steps),
        receive_power_w=0.3,
        failure_rate_hz=failure_rate_hz,
    )


def power_w(fleet, device, phase):
    """Watts while a device is in a phase, from first principles: kappa f^3, radio power, idle
    power; one that failed is off.
    """
    if phase == "off":
        return 0.0
    if phase == "upload":
        return fleet.tx_power_w[device]
    if phase == "download":
        return fleet.receive_power_w[device]
    if phase == "idle":
        return fleet.idle_power_w[device]
    return fleet.capacitance[device] * fleet.cpu_hz[device] ** 3


def test_compute_energy_by_hand():
    """1e-28 x (2e9)^2 x 1e9 cycles = 0.4 J; at twice the clock four times that."""
    assert compute_j(1e-28, 2e9, 1e9) == pytest.approx(0.4)
    assert compute_j(1e-28, 4e9, 1e9) == pytest.approx(1.6)


def test_a_round_by_hand(engine):
    """1 MHz at SNR 1 and 4e5 bits in the whole band: 0.4 s at 0.2 W; 1e6 weight steps x 5 cycles
    at 1e-28 x 4e18.
    """
    method = engine.method(
        personal_weights=0,
        warmup_steps=0,
        global_weights=1e5,
        global_steps=10,
        bits_per_weight=4,
        rho_bounds=(0, 0),
    )
    played = engine.play(
        fleet(1), 1.0, method, solver="equal", budget_s=10.0, bandwidth_hz=1e6, noise_w=0.2
    )
    spans = played.log.table("spans").set_index("phase")
    assert spans.energy_j["upload"] == pytest.approx(0.2 * 0.4)
    assert spans.energy_j["global"] == pytest.approx(5e6 * 4e-10)
    assert played.log.table("rounds").energy_j[0] == pytest.approx(0.08 + 0.002)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    num_devices=st.integers(1, 5),
    clock=st.sampled_from(["synchronous", "deadline"]),
    share=st.sampled_from(["fixed", "reclaim"]),
    failure_rate_hz=st.sampled_from([0.0, 30.0]),
)
def test_the_ledger_is_the_integral_of_the_power(
    engine, seed, num_devices, clock, share, failure_rate_hz
):
    played = engine.play(
        fleet(num_devices, failure_rate_hz),
        1e-10,
        clock=clock,
        share=share,
        coherence_s=3e-3,
        rounds=range(3),
        seed=seed,
        downlink=lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=10.0),
    )
    spans, rounds, rows = (
        played.log.table("spans"),
        played.log.table("rounds"),
        played.log.table("device_rounds"),
    )
    edges = np.unique(np.concatenate([spans.start_s, spans.end_s]))
    watts = np.zeros(len(edges) - 1)
    for span in spans.itertuples():
        during = (edges[:-1] >= span.start_s) & (edges[1:] <= span.end_s)
        watts[during] += power_w(played.cell.fleet, span.device, span.phase)
    joules = float(watts @ np.diff(edges))
    assert spans.energy_j.sum() == pytest.approx(joules, rel=1e-9)
    assert rounds.energy_j.sum() == pytest.approx(joules, rel=1e-9)
    assert rows.energy_j.sum() == pytest.approx(joules, rel=1e-9)  # here all devices are asked


def test_idle_power_fills_the_round_of_devices_that_are_alive(engine):
    """Two devices of different speed: each is busy or idle at every moment of the round."""
    played = engine.play(
        fleet(2), 1e-10, solver="equal", method=engine.method(rho_bounds=(0.5, 0.5))
    )
    spans = played.log.table("spans").assign(seconds=lambda table: table.end_s - table.start_s)
    assert (spans.phase == "idle").sum() == 1
    assert spans.groupby("device").seconds.sum().tolist() == pytest.approx([played.env.now] * 2)


def states_of(devices):
    """What the devices are made of: nothing that changes, so that only the way of playing does."""
    return {
        k: DeviceHardware(
            capacitance=devices.capacitance[k],
            idle_power_w=devices.idle_power_w[k],
            receive_power_w=devices.receive_power_w[k],
        )
        for k in range(len(devices))
    }


@pytest.mark.parametrize("with_state", [False, True])
def test_a_failed_device_draws_no_idle_power(engine, with_state):
    devices = fleet(2, failure_rate_hz=np.array([5000.0, 0.0]))
    hardware = states_of(devices) if with_state else None
    played = engine.play(devices, 1e-10, hardware=hardware)
    assert played.log.columns("device_rounds")["status"][0] == "failed"
    spans = played.log.table("spans")
    waits = spans[(spans.device == 0) & spans.phase.isin(["idle", "off"])]
    assert waits.phase.tolist() == ["off"] and waits.energy_j.tolist() == [0.0]
    assert waits.end_s.tolist() == [played.env.now]


def test_a_state_of_which_nothing_changes_changes_no_span(engine):
    """Three rounds in which all may crash, and of which one waits in the rounds after its own."""

    class AllThenOne(type(engine.method())):
        def select(self, state, view):
            return view.idle if view.g == 0 else view.idle[:1]

    devices = fleet(4, failure_rate_hz=60.0)
    plain, with_states = (
        engine.play(devices, 1e-10, AllThenOne(), rounds=range(3), seed=2, hardware=hardware)
        for hardware in (None, states_of(devices))
    )
    spans, again = (run.log.table("spans") for run in (plain, with_states))
    assert {"idle", "off"} <= set(spans.phase)
    pandas.testing.assert_frame_equal(spans, again, rtol=1e-9)


def test_no_idle_power_no_idle_spans(engine):
    plain = make_fleet([0.2, 0.5], 2e9, cycles_per_weight=5)
    assert "idle" not in set(engine.play(plain, 1e-10).log.columns("spans")["phase"])


def test_the_clock_that_was_granted_is_the_one_that_is_paid():
    from edgesim.network.span_energy import Ledger
    from edgesim.records.span import Span

    span = Span(0, 0, "train", cycles=1e9, planned_s=1.0)
    assert Ledger(fleet(1)).computing(Grant(0, 1.0, 0.0, 1e9, 0.2))(span) == pytest.approx(0.1)


def test_an_upload_that_waits_for_the_band_under_a_tdd_pattern():
    """3.5 of 7 s without the band, and 16 of 70 parts of the others on the air: 0.8 s at 0.2 W,
    6.2 s at 0.05 W.
    """
    from edgesim.network.span_energy import Ledger
    from edgesim.network.tdd_service import ALWAYS, MeanAirTime
    from edgesim.records.span import Span

    ledger = Ledger(fleet(1), air_times=(MeanAirTime(16 / 70), ALWAYS))
    span = Span(0, 0, "upload", start_s=1.0, end_s=8.0, waited_s=3.5)
    assert ledger.sending(Grant(0, 1.0, 0.0, 1e9, 0.2))(span) == pytest.approx(0.16 + 0.31)
    assert ledger.receiving(0)(Span(0, 0, "download", start_s=1.0, end_s=8.0)) == 0.3 * 7.0


def test_a_column_is_squared_as_its_numbers_are():
    """numpy's own square differs in the last bit of about one number in a thousand."""
    clocks = np.random.default_rng(0).uniform(1e9, 3e9, 100_000)
    assert squared(clocks).tolist() == [clock**2 for clock in clocks.tolist()]

"""Temperature of a processor in closed form, and a run with one that is throttled."""

import math

import pytest

from edgesim import load, simulate
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


HOT = """
name: hot
rounds: 12
network: {bandwidth: 10 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - count: 2
    tx_power: 23 dBm
    cpu:
      frequency: 1 GHz
      min_frequency: 500 MHz
      cycles_per_weight: 2000
      capacitance: 1e-26
      thermal: {resistance: 20 K/W, capacity: 5 J/K, limit: 31 degC, throttled: 300 MHz}
budget: {latency_threshold: 12 s}
allocation: {solver: energy}
learning:
  dataset: none
  model: liu-cnn
  batch_size: 20
  method: {name: pruning-only, local_steps: 2, warmup_steps: 1}
"""


def test_a_throttled_processor_may_be_slower_than_its_least_clock(tmp_path):
    """1.25 W at 500 MHz heat it by up to 25 K: then it is planned, and runs, with 300 MHz."""
    (tmp_path / "hot.yaml").write_text(HOT)
    rows = simulate(load(tmp_path / "hot.yaml")).device_rounds
    clock_hz = (rows.cycles / rows.compute_s).to_numpy()
    assert clock_hz[0] == pytest.approx(5e8) and clock_hz.min() == pytest.approx(3e8)


def test_a_hot_processor_of_half_the_capability_has_half_the_throttled_clock(tmp_path):
    """500 and 150 MHz; in round 5 the limit is reached while device 0 computes."""
    (tmp_path / "hot.yaml").write_text(HOT)
    half = ("devices.0.capability=0.5", "allocation.solver=kkt", "~devices.0.cpu.min_frequency")
    run = simulate(load(tmp_path / "hot.yaml", half))
    jobs, states = run.device_rounds[::2], run.device_states[::2]
    clock_hz = (jobs.cycles / jobs.compute_s).to_numpy()
    assert (clock_hz[0], clock_hz.min()) == pytest.approx((5e8, 1.5e8))
    job, state, began_s = jobs.iloc[5], states.iloc[5], states.time_s.iloc[4]
    hot_s = state.throttled_s - (state.time_s - began_s - job.compute_s)
    assert 0.1 < hot_s < 1.0
    assert 5e8 * (job.compute_s - hot_s) + 1.5e8 * hot_s == pytest.approx(job.cycles)

"""Joules under a TDD pattern: power is drawn on the air, and in the other slots devices wait."""

from __future__ import annotations

import math

import pytest

from edgesim import load, simulate

CELL = """
name: one
rounds: 1
network:
  carrier: {frequency: 3.5 GHz, bandwidth: 20 MHz, noise_figure: 5 dB}
  channel: {path_loss: {model: constant, loss: 115 dB}}
devices:
  - {count: 1, tx_power: 200 mW, cpu: {frequency: 1 GHz, cycles_per_weight: 1}}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 10, method: {name: fedavg}}
"""
PATTERN, SLOTS = "network.carrier.tdd=DDDSU", "network.carrier.tdd_clock=slots"
IDLE, UP, DOWN = "devices.0.idle_power=50 mW", 16 / 70, 52 / 70
BATTERY = "devices.0.battery={capacity: 100 J}"
RADIO = (
    "devices.0.radio={circuit_power: 100 mW, efficiency: 0.5, tail: 10 ms, tail_power: 30 mW, "
    "sleep_power: 1 mW}"
)
BROADCAST = [
    "network.downlink={mode: broadcast, tx_power: 30 dBm}",
    "devices.0.receive_power=0.3 W",
]


@pytest.fixture
def spans(tmp_path):
    """The spans of a run with these changes, by phase, with their seconds."""
    path = tmp_path / "one.yaml"
    path.write_text(CELL)

    def played(*changes):
        table = simulate(load(path, list(changes))).spans.set_index("phase")
        return table.assign(seconds=table.end_s - table.start_s)

    return played


def test_an_upload_costs_its_air_time(spans):
    """0.2 W x 16 / 70 of its time: the joules without a pattern, in 4.375 times the seconds."""
    whole, shared = spans().loc["upload"], spans(PATTERN).loc["upload"]
    snr = 0.2 * 10**-11.5 / (10 ** (-16.9 - 3) * 18.36e6)
    rate_bps = 18.36e6 * 14 / 15 * 0.92 * math.log2(1 + snr)
    assert whole.seconds == pytest.approx(whole.bits / rate_bps)
    assert shared.seconds == pytest.approx(4.375 * whole.seconds)  # the same ratio on the air
    assert shared.energy_j == pytest.approx(0.2 * UP * shared.seconds)
    assert shared.energy_j == pytest.approx(whole.energy_j) == pytest.approx(0.2 * whole.seconds)


def test_slots_of_the_other_direction_are_waited_for_at_idle_power(spans):
    upload = spans(PATTERN, IDLE).loc["upload"]
    assert upload.energy_j == pytest.approx((0.2 * 16 + 0.05 * 54) / 70 * upload.seconds)


def test_a_download_costs_its_air_time(spans):
    """Slots DDD and ten of the 14 symbols of S: 52 of 70."""
    download = spans(PATTERN, IDLE, *BROADCAST).loc["download"]
    assert download.energy_j == pytest.approx((0.3 * 52 + 0.05 * 18) / 70 * download.seconds)
    slots = spans(PATTERN, IDLE, SLOTS, *BROADCAST).loc["download"]
    air_s = DOWN * download.seconds
    assert slots.energy_j == pytest.approx(0.3 * air_s + 0.05 * (slots.seconds - air_s))


@pytest.mark.parametrize("hardware", [[], [BATTERY]])
def test_in_slots_the_air_time_is_the_same(spans, hardware):
    """The bits take as long on the air as at the mean rate, and the rest is waited for."""
    mean_s = spans(PATTERN).loc["upload"].seconds
    upload = spans(PATTERN, SLOTS, IDLE, *hardware).loc["upload"]
    waited_s = upload.seconds - UP * mean_s
    assert upload.seconds != pytest.approx(mean_s, rel=1e-5)
    assert upload.energy_j == pytest.approx(0.2 * UP * mean_s + 0.05 * waited_s, rel=1e-9)


def test_a_modem_listens_on_between_its_slots(spans):
    """0.1 + 0.2 / 0.5 W on the air; else 0.05 W beside the 0.03 W of listening on."""
    upload = spans(PATTERN, IDLE, RADIO).loc["upload"]
    assert upload.energy_j == pytest.approx((0.5 * 16 + 0.08 * 54) / 70 * upload.seconds)


@pytest.mark.parametrize("clock", [[], [SLOTS]])
def test_a_battery_that_holds_the_air_time_is_enough(spans, clock):
    """0.2 J: 0.0971 J are sent; 0.2 W for the whole upload would be 0.4249 J, and leave it out."""
    taken = spans(PATTERN, *clock, "devices.0.battery={capacity: 2 J, start: 0.1}")
    assert taken.loc["upload"].energy_j == pytest.approx(0.0971184, abs=1e-7)

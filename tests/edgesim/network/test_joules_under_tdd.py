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


WALK = "device,time_s,x_m,y_m\n0,0,200,0\n0,1,350,0\n1,0,420,0\n1,1,420,0\n"
PING_PONG = (
    "network.handover={filter: 0, offset: -3 dB, hysteresis: 0 dB, time_to_trigger: 0 ms, "
    "interruption: 39 ms}"
)
TWO_SITES = [
    "network.carrier.bandwidth=5 MHz",
    "network.layout={kind: sites, position: {list: [[0 m, 0 m], [500 m, 0 m]]}}",
    "network.channel={path_loss: {model: log-distance, reference_loss: 50 dB, exponent: 3.5}, "
    "refresh: 10 ms}",
    "network.interference=none",
    "devices.0.mobility={trace: walk.csv, end: hold}",
    "devices.0.count=2",
    PING_PONG,
]


def test_who_waits_for_a_band_between_slots_is_not_on_the_air(spans, tmp_path):
    """Device 0 is in a full sector for the last 1 ms of a pattern, before it leaves it again.

    4 / 7 ms of the uplink's slots are in it. Less 16 / 70 ms, the mean of the pattern, 69 uJ were
    charged for sending nothing.
    """
    (tmp_path / "walk.csv").write_text(WALK)
    played = spans(PATTERN, SLOTS, *TWO_SITES).loc["upload"]
    nothing = played[(played.bits == 0.0) & (played.seconds > 0.0)]
    assert nothing.seconds.to_numpy() == pytest.approx(1e-3) and len(nothing) >= 3
    assert nothing.energy_j.to_numpy() == pytest.approx(0.0, abs=1e-15)
    first, second = (played[played.device == k].iloc[-1] for k in (0, 1))
    waited_s = second.end_s - first.start_s
    mean_j = 0.2 * UP * (first.seconds - waited_s)  # over the pattern; slots differ by part of one
    assert waited_s > 1.0 and first.energy_j == pytest.approx(mean_j, abs=0.2 * UP * 2.5e-3)

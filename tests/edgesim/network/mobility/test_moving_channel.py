"""A cell whose devices move: gains by position, exact bits, plans, and resumed runs."""

import math

import numpy as np
import pytest
import simpy

from edgesim.errors import ScenarioError
from edgesim.network.fading.selective import SelectiveFading
from edgesim.network.mobility.movement import Movement, make_movement
from edgesim.network.mobility.moving_channel import MovingChannel
from edgesim.network.propagation.building_penetration import draw_surroundings
from edgesim.network.propagation.large_scale import LargeScale, SitePropagation
from edgesim.network.propagation.path_loss import path_gains
from edgesim.network.uplink import Uplink
from edgesim.runs.run import prepare, simulate
from edgesim.runs.setup import set_up
from edgesim.scenario import load
from edgesim.seeds import Seeds
from fl.contracts import Grant

TEXT = """
name: walk
rounds: 3
network:
  bandwidth: 20 MHz
  carrier: {frequency: 3.5 GHz}
  noise: -169 dBm/Hz
  channel:
    path_loss: {model: umi}
    refresh: 200 ms
    fading: {kind: rician, k: table, speed: 3 km/h}
devices:
  - count: 3
    tx_power: 23 dBm
    position: {disc: 150 m}
    mobility: {waypoint: {speed: {uniform: [5 m/s, 15 m/s]}, pause: 1 s}}
    cpu: {frequency: 2 GHz, cycles_per_weight: 5}
  - {count: 1, tx_power: 23 dBm, position: {disc: 150 m},
     cpu: {frequency: 2 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 1500 ms}
allocation: {rate: quantile}
learning: {dataset: none, model: liu-cnn, batch_size: 128,
  method: {name: liu, personal_lr: 0.1, global_lr: 0.1}}
"""
LINE = "device,time_s,x_m,y_m\n0,0,100,0\n0,100,1100,0\n"
BY_TRACE = {
    "network": "{bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: log-distance, "
    "reference_loss: 30 dB, exponent: 3.5}, refresh: 250 ms}}",
    "devices": "[{count: 1, tx_power: 20 dBm, mobility: {trace: line.csv}, "
    "cpu: {frequency: 2 GHz, cycles_per_weight: 5}}]",
    "allocation": "{rate: now}",
}


@pytest.fixture
def walking(tmp_path):
    def read(*changes):
        (tmp_path / "line.csv").write_text(LINE)
        (tmp_path / "walk.yaml").write_text(TEXT)
        return load(tmp_path / "walk.yaml", changes)

    return read


@pytest.fixture
def on_a_line(walking):
    return lambda *changes: walking(*(f"{k}={v}" for k, v in BY_TRACE.items()), *changes)


def test_gains_are_those_of_the_positions_at_each_refresh(walking):
    """Line of sight, shadowing and K factor by place: held for 200 ms, and the same on return."""
    setup = set_up(walking())
    movement = make_movement(setup.scenario.devices, setup.fleet, Seeds(0), setup.scenario.folder)
    around = draw_surroundings("umi", np.full(4, 1.5), 3.5, Seeds(0))
    site = SitePropagation("umi", 10.0, 3.5, Seeds(0), around)
    for time_s in (0.0, 7.3, 0.199, 0.2):
        place = movement.at(math.floor(round(time_s / 0.2, 9)) * 0.2)
        links = site.at(place)
        gain, k_factor = setup.channel.large_scale_at(time_s)
        assert gain.tolist() == path_gains(links).tolist()
        assert k_factor.tolist() == links.k_factor.tolist()
        power = setup.channel.fading.power(setup.channel.block(time_s), k_factor)
        assert setup.channel.gains(time_s).tolist() == (gain * power).tolist()
    assert setup.channel.large_scale_at(0.0)[0][3] == setup.channel.large_scale_at(60.0)[0][3]
    assert (setup.fleet.x_m == movement.at(0.0)[:, 0]).all()


def test_the_shape_of_the_band_has_the_k_factors_of_now():
    """Out of the shadow of a building nothing fades: SNR 4 carries log2(5) = 2.321928 bit/s/Hz."""

    def links_at(time_s):
        k_factor = 1e15 if time_s >= 1.0 else 0.0
        outside = np.zeros(1, dtype=bool)
        return LargeScale(outside, outside, np.full(1, 40.0), np.zeros(1), np.full(1, k_factor))

    fading = SelectiveFading(Seeds(0), 1, 10.0, 0.0, 300e-9, bandwidth_hz=20e6, parts=14)
    options = {"bandwidth_hz": 20e6, "noise_w_per_hz": 1e-20, "links": links_at(0.0)}
    still = Movement(np.zeros((1, 2)), ())
    channel = MovingChannel(still, links_at, path_gains, 1.0, True, fading=fading, **options)
    rate_bps = [
        float(channel.flow_bps(t, 0, 1.0, 4.0 * 20e6 * 1e-20 / 1e-4, channel.path_gain[0]))
        for t in (0.5, 1.5)
    ]
    assert rate_bps[1] == pytest.approx(20e6 * 2.321928, rel=1e-6)
    hidden = fading.powers(channel.block(0.5))[0]
    wanted = np.log2(1.0 + 4.0 * hidden / hidden.mean()).mean()
    assert rate_bps[0] == pytest.approx(20e6 * wanted, rel=1e-9) and wanted < 2.1


def test_bits_are_the_integral_of_the_rate_on_the_way(on_a_line):
    """A device goes away at 10 m/s: every 250 ms a lower rate, summed by hand."""
    channel = set_up(on_a_line()).channel
    env, segments = simpy.Environment(), []
    link = Uplink(env, channel, on_segment=lambda *each: segments.append(each))
    grant = Grant(0, 0.5, 0.0, 1e9, 0.1)
    link.begin_round([grant])
    bits = 30e6
    env.run(env.process(link.carry(bits, grant)))
    assert sum(each[5] for each in segments) == pytest.approx(bits, rel=1e-12)
    left, time_s = bits, 0.0
    while left > 0.0:
        distance_m = 100.0 + 10.0 * time_s
        snr = 0.1 * 10 ** (-3.0 - 3.5 * math.log10(distance_m)) / 1e-14
        rate = 0.5e6 * math.log2(1.0 + snr)
        used_s = min(0.25, left / rate)
        left, time_s = left - rate * used_s, time_s + used_s
    assert env.now == pytest.approx(time_s, rel=1e-9) and len(segments) == math.ceil(time_s / 0.25)


def test_a_plan_takes_the_place_of_its_instant(on_a_line):
    """After 40 s the device is 500 m away, and is planned for that rate."""
    setup = set_up(on_a_line())
    cell = setup.cell(simpy.Environment(initial_time=40.0))
    snr = 0.1 * 10 ** (-3.0 - 3.5 * math.log10(500.0)) / 1e-14
    assert cell.view(0).rate_bps[0] == pytest.approx(1e6 * math.log2(1.0 + snr), rel=1e-12)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_its_devices_are(walking, tmp_path):
    """Bytes of the tables: the legs are drawn again from the first one."""
    few = "allocation.rate=now"
    whole = simulate(walking(few), out=tmp_path / "whole")
    simulate(walking(few, "rounds=1"), out=tmp_path / "parts")
    parts = simulate(walking(few), out=tmp_path / "parts")
    assert whole.device_rounds.equals(parts.device_rounds) and whole.spans.equals(parts.spans)
    for name in ("rounds.csv", "device_rounds.parquet", "spans.parquet", "devices.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_gauss_markov_moves_and_going_far_in_a_round_is_told(walking):
    motion = "devices.0.mobility={gauss_markov: {speed: 8 m/s, deviation: 2 m/s}}"
    prepared = prepare(walking(motion))
    assert any("move up to 21 m within a round" in each for each in prepared.feasibility.warnings)
    endless = (motion, "budget.latency_threshold=none", "allocation={solver: equal}")
    unbounded = prepare(walking(*endless)).feasibility.warnings
    assert any("m/s within a round of any length, and are" in each for each in unbounded)
    gains = [prepared.setup.channel.large_scale_at(t)[0] for t in (0.0, 30.0)]
    assert (gains[0][:3] != gains[1][:3]).all() and gains[0][3] == gains[1][3]


@pytest.mark.slow
def test_a_trace_that_ends_before_the_run_is_one_sentence_with_the_line(on_a_line):
    with pytest.raises(ScenarioError, match=r"line.csv, which ends at 100 s for device 0, before"):
        simulate(on_a_line("rounds=2000"))


MOVES = "devices.0.mobility="
REFUSED = [
    ([MOVES + "{waypoint: {speed: 0 m/s}}"], "the slowest speed must be more than 0"),
    ([MOVES + "{waypoint: {speed: {uniform: [0 m/s, 2 m/s]}}}"], "the slowest speed must be more"),
    ([MOVES + "{waypoint: {speed: [1 m/s, 2 m/s, 3 m/s]}}"], "it is drawn for every leg, write"),
    ([MOVES + "{waypoint: {speed: 1}}"], "no unit"),
    ([MOVES + "{waypoint: {speed: 1 m/s, pause: -1 s}}"], "at least 0"),
    ([MOVES + "{waypoint: {pause: 1 s}}"], "speed is missing"),
    ([MOVES + "{}"], "does not say how"),
    ([MOVES + "{trace: line.csv, waypoint: {speed: 1 m/s}}"], "stands beside waypoint"),
    ([MOVES + "{waypoint: {speed: 1 m/s}, end: hold}"], "is read with trace only"),
    ([MOVES + "{gauss_markov: {speed: 1 m/s}}"], "deviation is missing"),
    (
        [MOVES + "{gauss_markov: {speed: 1 m/s, deviation: 1 m/s, memory: 1}}"],
        "at least 0 and less than 1",
    ),
    ([MOVES + "{trace: line.csv}"], "stands beside mobility.trace"),
    (["devices.0.position={list: [[1 m, 1 m], [2 m, 2 m], [3 m, 3 m]]}"], "needs an area to move"),
    (
        [
            MOVES + "{gauss_markov: {speed: 1 m/s, deviation: 1 m/s}}",
            "devices.0.position={ring: [1 m, 9 m]}",
        ],
        "needs an area to move in",
    ),
    (
        ["network.channel={path_loss: {model: constant, loss: 100 dB}}", "allocation.rate=now"],
        "mobility is not read with path_loss model constant",
    ),
    (["network.channel.refresh=0 s"], "at least 0.001"),
]


@pytest.mark.parametrize(("changes", "part"), REFUSED, ids=lambda each: str(each)[-40:])
def test_mistakes_are_one_sentence(walking, changes, part):
    with pytest.raises(ScenarioError) as refused:
        walking(*changes)
    assert part in str(refused.value) and "\n" not in str(refused.value)


def test_a_refresh_without_movement_and_a_missing_trace_are_refused(walking, on_a_line, tmp_path):
    still = "[{count: 1, tx_power: 1 W, position: {disc: 9 m}, cpu: {frequency: 2 GHz, " + (
        "cycles_per_weight: 5}}]"
    )
    with pytest.raises(ScenarioError, match="is read where devices move only"):
        walking(f"devices={still}")
    scenario = on_a_line("devices.0.mobility.trace=none.csv")
    with pytest.raises(ScenarioError, match=r"walk.yaml|command line.*none.csv, which cannot be"):
        set_up(scenario)


def test_a_trace_in_which_nobody_moves_is_a_place(tmp_path):
    """Gains are those of devices that stand where the trace has them, and are never taken anew."""
    cell = {**BY_TRACE, "network": BY_TRACE["network"].replace(", refresh: 250 ms", "")}
    changes = [f"{key}={value}" for key, value in cell.items()]
    (tmp_path / "walk.yaml").write_text(TEXT)
    (tmp_path / "line.csv").write_text("device,time_s,x_m,y_m\n0,0,100,0\n0,1000,100,0\n")
    traced = simulate(load(tmp_path / "walk.yaml", changes))
    placed = [each.replace("mobility: {trace: line.csv}", "distance: 100 m") for each in changes]
    still = simulate(load(tmp_path / "walk.yaml", placed))
    assert traced.rounds.equals(still.rounds) and set(traced.device_rounds.status) == {"arrived"}

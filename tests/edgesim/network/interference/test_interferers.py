"""Interference that is held for a round or a look, while devices move and are handed over."""

import numpy as np
import pytest
import simpy

from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.runs.run import simulate
from edgesim.scenario import load
from fl.contracts import Grant

WALK = "device,time_s,x_m,y_m\n0,0,245,1\n0,1,255,1\n0,40,256,1\n"  # over the border at 0.5 s
TEXT = """
name: two-sites
rounds: 1
network:
  bandwidth: 10 MHz
  noise: -169 dBm/Hz
  layout: {kind: sites, position: {list: [[0 m, 0 m], [500 m, 0 m]]}}
  channel: {path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 3.5}, refresh: 40 ms}
  handover: {filter: 0, interruption: 0 s, offset: 0 dB, hysteresis: 0 dB, time_to_trigger: 0 ms}
devices:
  - count: 1
    tx_power: 200 mW
    mobility: {trace: walk.csv, end: hold}
    cpu: {frequency: 100 MHz, cycles_per_weight: 1}
budget: {latency_threshold: 2 s}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 10, method: {name: fedavg}}
"""


@pytest.fixture
def uploads(tmp_path):
    """uploads(mode, walk, *changes) -> spans of uploads under a mode of interference."""
    (tmp_path / "two-sites.yaml").write_text(TEXT)

    def of_mode(mode, walk=WALK, *changes):
        (tmp_path / "walk.csv").write_text(walk)
        scenario = load(tmp_path / "two-sites.yaml", [f"network.interference={mode}", *changes])
        return simulate(scenario).spans.query("phase == 'upload'")

    return of_mode


@pytest.mark.parametrize("mode", ["full", "load", "{refresh: 500 ms}"])
def test_a_device_that_was_handed_over_does_not_disturb_itself(uploads, mode):
    """Nobody else is there: each mode is then as fast as who hears those that really send."""
    alone, held = uploads("events"), uploads(mode)
    assert len(alone) == 2  # one span in each sector
    for column in ("start_s", "end_s", "bits"):
        assert held[column].to_numpy() == pytest.approx(alone[column].to_numpy(), rel=1e-12)


NEARER = "device,time_s,x_m,y_m\n0,0,-200,0\n1,0,450,0\n1,1,260,0\n"  # 250 m, then 60 m from 500 m
BITS, START_S = 14_557_504.0, 454_922 * 5 / 100e6  # five steps on 454,922 weights at 100 MHz


def from_200_m_s(at_m):
    """Time of BITS of device 0 beside device 1, whose distances in steps of 0.1 s are given."""

    def gain(distance_m):
        return 10.0 ** (-(40.0 + 35.0 * np.log10(distance_m)) / 10.0)

    now_s, left, step = START_S, BITS, 0
    while left > 0.0:
        noise_w_per_hz = 10.0 ** (-19.9) + 0.2 * gain(at_m(step)) / 10e6
        rate_bps = 10e6 * np.log2(1.0 + 0.2 * gain(200.0) / (10e6 * noise_w_per_hz))
        spent_s = min(0.1 * (step + 1) - now_s, left / rate_bps)
        now_s, left, step = now_s + spent_s, left - spent_s * rate_bps, step + 1
    return now_s - START_S


def test_who_is_held_disturbs_from_where_it_is_now(uploads, tmp_path):
    """Device 1 comes from 450 to 260 m: 1.371040 s, and 1.213028 s if it stayed at 450 m."""
    walks = ("devices.0.count=2", "network.handover.event=none", "network.channel.refresh=100 ms")
    moved_s = from_200_m_s(lambda step: 450.0 - 19.0 * min(step, 10))
    assert moved_s == pytest.approx(1.371040, abs=1e-6)
    assert from_200_m_s(lambda step: 450.0) == pytest.approx(1.213028, abs=1e-6)
    first = uploads("full", NEARER, *walks).query("device == 0")
    assert (first.end_s - first.start_s).to_numpy() == pytest.approx([moved_s], rel=1e-9)


@pytest.mark.parametrize("others_have_grants", [True, False])
def test_a_round_of_some_sectors_leaves_who_was_seen_in_others(others_have_grants):
    """Device 1 is seen at 0.1 s and ends at 0.137 s: heard until 0.2 s, whoever begins a round.

    10 Mbit at 73.207161 Mbit/s alone and 33.795951 beside the other. Where nobody else has a
    grant, a round begins with nobody.
    """
    env, couplings = simpy.Environment(), Couplings([[1e-10, 1e-11], [1e-11, 1e-10]], [0, 1])
    density = 10.0 ** ((-174.0 + 5.0 - 30.0) / 10.0)
    channel = SectorChannel(couplings, bandwidth_hz=10e6, noise_w_per_hz=density)
    uplink, ends_s = NetworkUplink(env, channel, couplings, "refresh", refresh_s=0.1), {}

    def round_of(device, start_s):
        yield env.timeout(start_s)
        grant, members = Grant(device, 1.0, 0.0, 1e9, 0.2), np.array([device])
        uplink.begin_part([grant], members)
        yield from uplink.carry(10e6, grant)
        ends_s[device] = env.now
        if not others_have_grants:
            uplink.begin_part([], members)

    env.process(round_of(1, 0.0))
    env.process(round_of(0, 0.15))
    env.run()
    heard_s = 0.05 if others_have_grants else 0.0
    assert ends_s[1] == pytest.approx(10e6 / 73.207161448e6, abs=1e-9)
    rest_s = (10e6 - heard_s * 33.795950746e6) / 73.207161448e6
    assert ends_s[0] == pytest.approx(0.15 + heard_s + rest_s, abs=1e-9)

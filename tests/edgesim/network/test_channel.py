"""Decibels, and fading that changes at block edges and nowhere else."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.network.channel import Channel
from edgesim.network.device import draw_fleet
from edgesim.network.fading.processes import BlockFading
from edgesim.network.make_channel import make_channel
from edgesim.network.propagation.path_loss import linear, log_distance_db
from edgesim.seeds import Seeds

COHERENCE = st.floats(1e-6, 10.0)


def fading(num_devices=3, coherence_s=5e-3, seed=0):
    blocks = BlockFading(Seeds(seed), num_devices, coherence_s)
    return Channel(1e6, np.ones(num_devices), noise_w=1.0, fading=blocks)


def test_decibels_and_distance():
    assert linear([0.0, -100.0]) == pytest.approx([1.0, 1e-10])
    assert log_distance_db([10.0, 100.0], 38.5, 1.0, 3.0) == pytest.approx([68.5, 98.5])


def test_a_static_channel_never_changes():
    channel = Channel(1e6, [1e-10, 1e-9], noise_w=1e-11)
    assert channel.next_change_s(3.0) == math.inf
    assert channel.gains(1e9).tolist() == [1e-10, 1e-9]


@given(COHERENCE, st.integers(0, 10**6))
def test_an_edge_belongs_to_the_block_that_begins(coherence_s, n):
    channel, edge_s = fading(coherence_s=coherence_s), n * coherence_s
    assert channel.block(edge_s) == n
    assert channel.block(math.nextafter(edge_s, math.inf)) == n
    assert n == 0 or channel.block(math.nextafter(edge_s, 0.0)) == n - 1
    assert channel.next_change_s(edge_s) == (n + 1) * coherence_s


@given(COHERENCE, st.floats(0, 1e12))
def test_the_next_change_lies_ahead(coherence_s, time_s):
    assert fading(coherence_s=coherence_s).next_change_s(time_s) > time_s


def test_gain_is_constant_within_a_block_and_independent_of_the_past():
    channel = fading()
    first = channel.gains(0.0)
    assert (channel.gains(4.999e-3) == first).all()
    assert (channel.gains(5e-3) != first).all()
    assert (channel.gains(0.0) == first).all()
    assert (fading().gains(0.0) == first).all()


def test_a_device_added_at_the_end_fades_nobody_else():
    assert (fading(4).gains(0.1)[:3] == fading(3).gains(0.1)).all()


def test_fading_is_exponential_with_mean_one():
    drawn = np.concatenate([fading(2000, seed=s).gains(0.0) for s in range(10)])
    assert drawn.mean() == pytest.approx(1.0, abs=4 / math.sqrt(drawn.size))
    assert (drawn < math.log(2)).mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(drawn.size))


SCENARIO = """
name: three
rounds: 1
network:
  bandwidth: 10 MHz
  noise: -170 dBm/Hz
  uplink: {{share: reclaim}}
  downlink: {{mode: broadcast, tx_power: 40 dBm}}
  channel: {{path_loss: {loss}, shadowing: {shadowing}, fading: {{kind: rayleigh, coherence: 5 ms}}}}
devices:
  - {{count: 2, tx_power: 30 dBm, distance: [10 m, 100 m],
     cpu: {{frequency: 1 GHz, cycles_per_weight: 5}}}}
  - {{count: {last}, tx_power: 20 dBm, distance: {{uniform: [20 m, 30 m]}},
      cpu: {{frequency: 2 GHz, flops_per_cycle: 4}}, failure_rate: 3 Hz}}
budget: {{latency_threshold: 25 ms}}
allocation: {{solver: equal}}
learning:
  dataset: digits
  partition: {{kind: iid}}
  model: mlp
  batch_size: 32
  method: fedavg
"""  # noqa: E501
BY_DISTANCE = "{model: log-distance, reference_loss: 40 dB, exponent: 3}"


@pytest.fixture
def built(tmp_path):
    """(network, fleet, channel) of the scenario above."""
    from edgesim.scenario.loader import load

    def build(loss=BY_DISTANCE, shadowing="none", last=1, distances=True):
        file = tmp_path / "three.yaml"
        text = SCENARIO.format(loss=loss, shadowing=shadowing, last=last)
        file.write_text(
            text if distances else re.sub(r"distance: [\[{].*?[\]}], *", "", text), encoding="utf-8"
        )
        scenario = load(file)
        devices = draw_fleet(scenario.devices, Seeds(0))
        return scenario.network, devices, make_channel(scenario.network, devices, Seeds(0))

    return build


def test_a_scenario_becomes_devices_and_gains(built):
    _, fleet, air = built()
    assert fleet.cpu_hz.tolist() == [1e9, 1e9, 2e9]
    assert fleet.tx_power_w == pytest.approx([1.0, 1.0, 0.1])
    assert fleet.failure_rate_hz.tolist() == [0.0, 0.0, 3.0]
    assert np.isnan(fleet.cycles_per_weight).tolist() == [False, False, True]
    assert air.path_gain[:2] == pytest.approx([1e-7, 1e-10])  # 40 + 30 and 40 + 60 dB
    assert 10 * np.log10(air.path_gain[2]) == pytest.approx(
        -40 - 30 * np.log10(fleet.distance_m[2])
    )
    assert 20 <= fleet.distance_m[2] <= 30
    assert (air.bandwidth_hz, air.coherence_s, air.noise_w) == (10e6, 5e-3, None)
    assert air.noise_w_per_hz == pytest.approx(1e-20, abs=0.0)


def test_a_list_of_losses_has_one_for_every_device_of_the_cell(built):
    _, _, air = built("{model: constant, loss: [90 dB, 100 dB, 110 dB]}", distances=False)
    assert air.path_gain == pytest.approx([1e-9, 1e-10, 1e-11])


def test_shadowing_is_normal_in_decibels_and_keeps_its_draws_when_a_device_is_added(built):
    plain, shadowed, more = (
        built()[2],
        built(shadowing="8 dB")[2],
        built(shadowing="8 dB", last=2000)[2],
    )
    assert (more.path_gain[:3] == shadowed.path_gain).all()
    assert (shadowed.path_gain != plain.path_gain).all()
    shadow_db = 10 * np.log10(more.path_gain / built(last=2000)[2].path_gain)
    assert shadow_db.std() == pytest.approx(8.0, abs=4 * 8 / math.sqrt(2 * 2002))
    assert shadow_db.mean() == pytest.approx(0.0, abs=4 * 8 / math.sqrt(2002))


def test_a_scenario_becomes_links(built):
    import simpy

    from edgesim.network.band.link_choice import make_links
    from edgesim.network.downlink.broadcast import BroadcastDownlink

    network, _, air = built()
    _, downlink = make_links(simpy.Environment(), network, air, Seeds(0))
    assert isinstance(downlink, BroadcastDownlink)
    assert (downlink.tx_power_w, downlink.bandwidth_hz) == (pytest.approx(10.0), 10e6)

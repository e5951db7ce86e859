"""Devices that a plan leaves out where jobs overlap: others are asked in their place at once."""

from __future__ import annotations

import pytest

from edgesim import load, simulate
from tests.edgesim.resumed_runs import assert_resumed

CELL = """
name: six
rounds: 40
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - {count: 5, tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 2000}}
  - {count: 1, tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 2000}}
budget: {latency_threshold: 100 ms}
allocation: {solver: equal}
learning:
  dataset: none
  model: mlp
  batch_size: 10
  method: {name: pruning-only, local_steps: 2, rho_max: 0.5, warmup_steps: 1}
"""
# why device 5 cannot take part -> how its class differs
UNABLE = {
    "too slow": ("devices.1.cpu.frequency=10 MHz",),
    "battery too weak": ("devices.1.battery={capacity: 2 J, start: 0.001}",),
}
CLOCKS = {
    "asynchronous": "clock={mode: asynchronous, in_flight: 1}",
    "two at work": "clock={mode: asynchronous, in_flight: 2}",
    "buffered": "clock={mode: buffered, in_flight: 3, buffer: 2}",
}


@pytest.fixture
def six(tmp_path):
    """six(*changes) -> five equal devices, and one of a class of its own."""
    path = tmp_path / "six.yaml"
    path.write_text(CELL)
    return lambda *changes: load(path, [*changes])


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("unable", UNABLE.values(), ids=UNABLE)
def test_another_device_is_asked_at_once(six, unable, clock):
    """All jobs are equal, so that versions come as often as where everybody can take part."""
    whole, run = (simulate(six(clock, *changes)) for changes in ((), unable))
    assert run.rounds.infeasible.sum() > 0
    assert run.rounds.arrived.tolist() == whole.rounds.arrived.tolist()
    assert run.rounds.time_s.tolist() == pytest.approx(whole.rounds.time_s.tolist(), rel=1e-9)
    asked = run.device_rounds[run.device_rounds.status == "infeasible"]
    assert not asked.duplicated(["round", "device"]).any()  # once for each version


def test_a_version_of_nobody_ends_at_the_threshold(six):
    """Where nobody is left who could be asked."""
    weak = UNABLE["battery too weak"][0]
    everybody = (weak, weak.replace("devices.1", "devices.0"))
    run = simulate(six(CLOCKS["asynchronous"], "rounds=3", *everybody))
    assert run.rounds.time_s.tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert run.rounds.infeasible.tolist() == [6, 6, 6]


@pytest.mark.slow
@pytest.mark.parametrize("unable", UNABLE.values(), ids=UNABLE)
def test_a_resumed_run_gives_the_bytes_of_the_whole_one(six, unable, tmp_path):
    given = six(CLOCKS["buffered"], "rounds=12", *unable)
    assert_resumed(given, tmp_path, (2, 7), ("rounds.csv", "device_rounds.parquet"))


@pytest.mark.slow
def test_who_can_take_part_later_is_asked_again_for_the_same_version(six):
    """The battery of device 1 is charged while device 0 computes: versions had one update."""
    battery = "devices.1.battery={capacity: 2 J, start: 0.001, charging: {power: 100 W}}"
    clock = "clock={mode: buffered, in_flight: 2, buffer: 2, slot: until_used}"
    run = simulate(six(clock, "rounds=2", "devices.0.count=1", battery))
    first = run.device_rounds.query("round == 0")
    assert sorted(zip(first.device, first.status, strict=True)) == [
        (0, "arrived"),
        (1, "arrived"),
        (1, "infeasible"),
    ]
    assert run.rounds.arrived.tolist() == [2, 2]

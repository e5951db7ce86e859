"""Keys of processor, battery and modem: what is read, written back, and refused in one sentence."""

from __future__ import annotations

import pytest

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from edgesim.scenario.hardware.device_schema import DeviceClass

CELL = """
name: phones
rounds: 1
network: {bandwidth: 40 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices:
  - count: 2
    tx_power: 23 dBm
    cpu:
      frequency: 2 GHz
      cycles_per_weight: 80
      levels: [500 MHz, 1 GHz, 2 GHz]
      governor: deadline
      static_power: 100 mW
      thermal: {resistance: 10 K/W, capacity: 5 J/K, limit: 75 degC, throttled: 1 GHz}
      background: {to_busy: 0.2 Hz, to_idle: 0.5 Hz, busy_share: 0.4}
    battery:
      capacity: 15.4 Wh
      start: [0.5, 1]
      charging: {power: 5 W, period: 24 h, from: 22 h, lasts: 8 h}
    radio: {circuit_power: 100 mW, efficiency: 0.35}
budget: {latency_threshold: 2 s}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 32, method: {name: fedavg}}
"""
CPU, BATTERY = "devices.0.cpu", "devices.0.battery"
REFUSED = {
    f"{CPU}.levels=[2 GHz, 1 GHz]": 'levels.1="1 GHz"; the list must ascend',
    f"{CPU}.levels=[]": "an empty list; write at least one value",
    f"{CPU}.levels=[500 MHz, 1 GHz]": "the last of levels must be cpu.frequency (2 GHz)",
    f"{CPU}.levels=[1, 2]": "no unit",
    f"~{CPU}.levels": 'governor is "deadline", which chooses among levels',
    f"{CPU}.governor=ondemand": "allowed is performance or powersave or deadline",
    f"{CPU}.static_power=-1 W": "allowed is at least 0",
    f"{CPU}.thermal.throttled=2 GHz": "allowed is less than cpu.frequency",
    f"{CPU}.thermal.throttled=700 MHz": "with levels it must be one of them",
    f"{CPU}.thermal.limit=29 degC": "it must lie above ambient = 25 degC",
    f"{CPU}.thermal.limit=75 K": "a temperature is needed",
    f"{CPU}.thermal.hysteresis=0 K": "allowed is at least 0.1 K",
    f"{CPU}.thermal.resistance=10 W": "a thermal resistance is needed",
    f"{CPU}.thermal.capacity=0 J/K": "allowed is at least 0.001 J/K",
    f"~{CPU}.thermal.limit": "thermal.limit is missing",
    f"{CPU}.background.busy_share=1": "nothing is taken away",
    f"{CPU}.background.busy_share=1.5": "allowed is at least 0 and at most 1",
    f"{CPU}.background.to_busy=0 Hz": "allowed is more than 0",
    f"{CPU}.background.to_idle=1 GHz": "at most 1e+06",
    f"{BATTERY}.capacity=0 J": "allowed is more than 1 J",
    f"{BATTERY}.capacity=15 W": "an energy is needed",
    f"{BATTERY}.start=[0.5, 1, 1]": "has 3 values, but count says 2 devices",
    f"{BATTERY}.start=1.2": "at most 1",
    f"{BATTERY}.resume=0": "at least 0.01",
    f"~{BATTERY}.charging.period": "charging.from is not read without period",
    f"~{BATTERY}.charging.lasts": "charging.lasts is missing",
    f"{BATTERY}.charging.lasts=25 h": "allowed is less than period",
    f"{BATTERY}.charging.period=0.1 s": "allowed is at least 1 s",
    "devices.0.radio.efficiency=0": "allowed is more than 0 and at most 1",
    "devices.0.radio.tail=-1 s": "allowed is at least 0",
    "~devices.0.radio.circuit_power": "radio.circuit_power is missing",
    "~budget.latency_threshold": "is deadline, which needs budget.latency_threshold",
}
UNCOUNTED = {
    f"{CPU}.static_power=1 W": "static_power",
    f"{CPU}.background={{to_busy: 1 Hz, to_idle: 1 Hz, busy_share: 0}}": "background",
    f"{CPU}.governor=powersave": "governor",
    "devices.0.radio={circuit_power: 0 W, efficiency: 1}": "radio",
}


@pytest.fixture
def path(tmp_path):
    (tmp_path / "phones.yaml").write_text(CELL)
    return tmp_path / "phones.yaml"


def test_what_is_read_is_what_is_written_back(path, tmp_path):
    first: DeviceClass = load(path).devices[0]
    assert first.battery.capacity_j.values == (55_440.0,)  # 15.4 Wh
    assert first.battery.charging.period_s == 86_400.0
    assert (first.cpu.thermal.ambient_c, first.cpu.thermal.hysteresis_k) == (25.0, 5.0)
    (tmp_path / "again.yaml").write_text(load(path).to_yaml())
    assert load(tmp_path / "again.yaml").devices == load(path).devices


def test_a_scenario_without_these_keys_is_written_without_them(path, tmp_path):
    removed = ("battery", "radio", *(f"cpu.{name}" for name in ("levels", "governor")))
    removed = [f"~devices.0.{name}" for name in (*removed, "cpu.thermal", "cpu.background")]
    text = load(path, [*removed, "~devices.0.cpu.static_power"]).to_yaml()
    for word in ("battery", "radio", "levels", "governor", "static_power", "thermal", "background"):
        assert word not in text


@pytest.mark.parametrize(("change", "sentence"), REFUSED.items(), ids=REFUSED)
def test_bad_hardware_is_one_sentence(path, change, sentence):
    with pytest.raises(EdgesimError) as refused:
        load(path, [change])
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("change", "key"), UNCOUNTED.items(), ids=UNCOUNTED)
def test_the_solver_energy_refuses_what_it_does_not_count(path, change, key):
    plain = ["static_power", "background", "governor"]
    removed = [*(f"~{CPU}.{name}" for name in plain), "~devices.0.radio"]
    with pytest.raises(EdgesimError) as refused:
        simulate(load(path, [*removed, change, "allocation.solver=energy"]))
    assert f"{key} is not counted by the solver energy" in str(refused.value)


def test_the_word_none_takes_a_presence_away(tmp_path):
    """A scheme whose devices are always there, beside others whose devices come and go."""
    path = tmp_path / "phones.yaml"
    path.write_text(CELL)
    bare = [f"~{CPU}.thermal", f"~{CPU}.background", f"~{BATTERY}", "~devices.0.radio"]
    comes = "devices.0.presence={kind: onoff, on: 3 s, off: 1 s}"
    plain = load(path, bare)
    there = load(path, [*bare, comes, "devices.0.presence=none"])
    assert there.devices[0].presence is None and there.digest() == plain.digest()
    assert load(path, [*bare, comes]).digest() != plain.digest()

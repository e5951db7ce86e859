"""Events of a run: counted by hand, and what a run of too many is told."""

import pytest
import simpy

from edgesim.errors import ScenarioError
from edgesim.runs.run import prepare, simulate
from edgesim.scenario.loader import load

# 1 MHz with an SNR of 3 carries 2 Mbit/s; each of two devices has half of it for its upload
CELL = """\
name: counted
rounds: 10
network:
  bandwidth: 1 MHz
  noise: 1 mW
  channel: {path_loss: {model: constant, loss: 0 dB}}
devices:
  - {count: 2, tx_power: 3 mW, cpu: {frequency: 1 GHz, cycles_per_weight: 1}}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""


@pytest.fixture
def cell(tmp_path):
    (tmp_path / "counted.yaml").write_text(CELL)
    return tmp_path / "counted.yaml"


def prepared(path, *changes):
    return prepare(load(path, changes))


def test_without_fading_a_device_has_nine_events(cell):
    assert prepared(cell).feasibility.events.total == 2 * 9
    assert prepared(cell, "devices.0.count=100").feasibility.events.total == 100 * 9


def test_with_reclaimed_band_each_device_wakes_those_that_still_send(cell):
    many = prepared(cell, "devices.0.count=100", "network.uplink.share=reclaim")
    assert many.feasibility.events.total == 100 * 9 + 100 * 99 / 2


def test_with_fading_a_link_has_an_event_in_every_block(cell):
    run = prepared(cell, "network.channel.fading={kind: rayleigh, coherence: 1 ms}")
    seconds = run.feasibility.rows[0]["planned_ms"] / 1e3
    stages = sum(run.feasibility.rows[0]["stages"].values()) / 1e3
    others = run.feasibility.rows[1]
    seconds += (others["planned_ms"] - sum(others["stages"].values())) / 1e3 - stages
    assert run.feasibility.events.total == pytest.approx(18 + seconds / 1e-3)


SLOTS = (
    "~network.bandwidth",
    "network.carrier={frequency: 3.5 GHz, bandwidth: 5 MHz, tdd: DDDSU, tdd_clock: slots}",
    "network.noise=-169 dBm/Hz",
    "network.channel.path_loss.loss=120 dB",
    "devices.0.tx_power=23 dBm",
    "devices.0.radio={circuit_power: 100 mW, efficiency: 0.35}",
)  # 0.77 W on the air, 0.1 W in other slots, 0.25 W on average
CHARGED = "devices.0.battery={capacity: 15 Wh, start: %s, charging: {power: %s}}"
PROGRAMS = "{to_busy: 300 Hz, to_idle: 150 Hz, busy_share: 0.5}"
LOADED = f"devices.0.cpu.background={PROGRAMS}"
CRASHING = ("devices.0.failure_rate=1 kHz", "devices.0.on_failure=resume")
FADING_AT_SPEED = "network.channel.fading={kind: rayleigh, speed: 50 m/s}"
BUSY = f"cpu: {{frequency: 1 GHz, cycles_per_weight: 10000, background: {PROGRAMS}}}"
TWO_GROUPS = "devices=[{0}, {0}]".format(f"{{count: 1, tx_power: 3 mW, {BUSY}}}")
PLACED = (
    "network.channel.path_loss={model: log-distance, reference_loss: 0 dB, exponent: 2}",
    "network.channel.refresh=1 ms",
    "network.bandwidth=100 kHz",
    "network.noise=1 nW",
    "devices.0.position={disc: 100 m}",
    "devices.0.mobility={waypoint: {speed: {uniform: [1 m/s, 2 m/s]}}}",
)


@pytest.mark.parametrize(
    "changes",
    [
        [*SLOTS, CHARGED % (1, "0.3 W")],
        [*SLOTS, CHARGED % (1, "1 W")],
        [*SLOTS, CHARGED % (1, "0.2 W")],
        [*SLOTS, CHARGED % (0.5, "0.3 W")],
        [LOADED, "devices.0.cpu.cycles_per_weight=10000"],
        PLACED,
        CRASHING,
    ],
    ids=["full", "charger of more", "charger of less", "half full", "programs", "walkers", "crash"],
)
def test_the_estimate_is_near_what_a_run_counts(cell, changes, monkeypatch):
    """Of thousands not far off; a charger of less lets the battery fall, after some slots."""
    counted, step = [], simpy.Environment.step
    monkeypatch.setattr(simpy.Environment, "step", lambda env: counted.append(step(env)))
    simulate(load(cell, ["rounds=1", *changes]))
    estimate = prepared(cell, "rounds=1", *changes).feasibility.events.total
    assert abs(estimate - len(counted)) < max(0.25 * len(counted), 100)


def test_nanoseconds_of_coherence_are_refused_with_their_key(cell):
    changes = "network.channel.fading={kind: rayleigh, coherence: 1 ns}", "rounds=100000"
    with pytest.raises(ScenarioError) as refused:
        prepared(cell, *changes)
    sentence = str(refused.value)
    assert "network.channel.fading.coherence is 1 ns: the run would need about" in sentence
    assert sentence.endswith("write a longer time") and "years" in sentence


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            [*SLOTS, CHARGED % (1, "0.3 W")],
            "network.carrier.tdd_clock is slots beside a battery that stays full: ",
        ),
        (
            [LOADED, "devices.0.cpu.cycles_per_weight=10000"],
            "devices.0.cpu.background is of many switches: ",
        ),
        (PLACED, "network.channel.refresh is 1 ms: "),
        (
            [*PLACED, "network.channel.fading={kind: rayleigh, coherence: 1 ms}"],
            "network.channel.fading.coherence is 1 ms: ",
        ),
        (
            ["network.carrier.frequency=28 GHz", FADING_AT_SPEED],
            "network.channel.fading.speed is 50 m/s: ",
        ),
        (CRASHING, "devices.0.failure_rate is up to 1 kHz: "),
        ([TWO_GROUPS], "devices is of 2 groups with other programs of many switches: "),
    ],
    ids=["slots", "programs", "walkers", "walkers under fading", "speed", "crash", "two groups"],
)
def test_what_makes_most_of_the_events_is_named(cell, changes, sentence):
    warned = prepared(cell, *changes, "rounds=10000000").feasibility.warnings
    assert warned[-1].startswith(f"{sentence}the run needs about ")


def test_many_rounds_are_warned_about(cell):
    (warning,) = prepared(cell, "rounds=1000000000").feasibility.warnings
    assert warning == "rounds is 1000000000: the run needs about 2e+10 events, 6.9 days"
    assert prepared(cell, "rounds=1000000").feasibility.warnings == []


def test_rounds_of_edges_count(cell):
    """kappa_2 of them in a round, within which no checkpoint is written."""
    edge = "tiers={edges: [{}], association: list, members: [0, 0], local_rounds: %d}"
    (warning,) = prepared(cell, edge % 1000, "rounds=1000000").feasibility.warnings
    assert warning == "rounds is 1000000: the run needs about 2e+10 events, 6.9 days"
    (warning,) = prepared(cell, edge % 1_000_000, "rounds=6").feasibility.warnings
    assert warning == "tiers.local_rounds is 1000000: the run needs about 1e+08 events, 1 h"
    with pytest.raises(ScenarioError, match=r"in a round.*write fewer local rounds, or fewer dev"):
        wide = edge.replace("[0, 0]", str([0] * 20)) % 1_000_000
        prepared(cell, wide, "devices.0.count=20", "rounds=1")


def test_too_many_rounds_and_devices_are_refused(cell):
    with pytest.raises(ScenarioError, match=r"rounds is 1000000000: .* write fewer rounds"):
        prepared(cell, "rounds=1000000000", "devices.0.count=10000")


def test_one_round_without_an_end_is_refused(cell):
    """No checkpoint is written within a round."""
    fading = "network.channel.fading={kind: rayleigh, coherence: 10 ns}"
    sentence = r"coherence is 10 ns: .* in a round, planned to last 0\.92 s\); write a longer time$"
    with pytest.raises(ScenarioError, match=sentence):
        prepared(cell, fading, "rounds=1")


def test_a_round_of_years_is_named_beside_the_key(cell):
    """0.154 s at an SNR of 3 are 0.154 s * 2 / log2(1 + 3e-9) = 7.11e7 s at one of 3e-9."""
    with pytest.raises(ScenarioError) as refused:
        prepared(cell, *CRASHING, "devices.0.tx_power=3 pW", "rounds=1")
    assert str(refused.value).endswith(
        ": the run would need about 7e+11 events, 270 days (7e+11 in a round, planned to last "
        "2.3 years); write a lower rate, or let rounds be shorter"
    )


def test_crashes_without_an_end_are_refused(cell):
    """A job that goes on after each of 150 million; jobs that are lost end with the first."""
    crashes = "devices.0.failure_rate=1 GHz", "rounds=1"
    with pytest.raises(ScenarioError, match=r"failure_rate is up to 1 GHz: .*write a lower rate"):
        prepared(cell, *crashes, "devices.0.on_failure=resume")
    assert prepared(cell, *crashes).feasibility.events.crashes == 0.0

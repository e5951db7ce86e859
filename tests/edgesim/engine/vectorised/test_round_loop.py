"""Rounds as arrays: the same bytes as by one process per device."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

import edgesim.runs.play_rounds
from edgesim import load, simulate
from edgesim.engine.vectorised.round_loop import needs_processes
from edgesim.records.checkpoint.checkpoint_log import read_blocks
from edgesim.runs.artifacts import devices_csv
from edgesim.runs.setup import set_up

CROWD = """
name: crowd
rounds: 3
network:
  bandwidth: 200 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: {uniform: [90 dB, 120 dB]}}}
devices:
  - {count: 6, tx_power: 28 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 5}}
  - {count: 5, tx_power: 20 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, flops_per_cycle: 700}}
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: liu-cnn, batch_size: 20, method: {name: liu}}
"""

FADING = "network.channel.fading={kind: rayleigh, coherence: 1.3 ms}"

IDLE = ["devices.0.idle_power=0.3 W", "devices.1.idle_power=0.2 W", "devices.1.availability=0.5"]

FLAKY = [
    "devices.0.availability=0.7",
    "devices.1.capability={uniform: [0.1, 1]}",
    "devices.1.capability_drawn=round",
]

CASES = {
    "static": [],
    "fading": [FADING],
    "equal, fading, late devices": [
        FADING,
        "allocation.solver=equal",
        "learning.method.rho_max=0.6",
    ],
    "deadline": [
        "clock.mode=deadline",
        "allocation.solver=equal",
        "learning.method.rho_max=0.6",
        *IDLE,
    ],
    "deadline, fading": [FADING, "clock.mode=deadline", "allocation.solver=equal", *IDLE],
    "deadline while they compute": [
        *(
            "clock.mode=deadline",
            "allocation.solver=equal",
            "learning.method={name: fedalt, personal_steps: 3}",
        ),
        *(
            "devices.0.cpu.frequency={uniform: [0.1 GHz, 1 GHz]}",
            "devices.1.cpu.frequency=0.2 GHz",
            FADING,
        ),
    ],
    "idle, absent, changing": [*IDLE[:2], *FLAKY],
    "left out": [
        "devices.1.cpu.frequency={uniform: [0.3 GHz, 3 GHz]}",
        "learning.batch_size=128",
        *IDLE,
    ],
    "nobody can": [
        "devices.0.availability=0.01",
        "devices.1.availability=0.01",
        "seed=1",
        *IDLE[:2],
    ],
    "tdd": [
        "network.carrier={frequency: 3.5 GHz, bandwidth: 100 MHz, tdd: DDDSU, noise_figure: 5 dB}",
        "network.bandwidth=98.28 MHz",
        "network.noise=-169 dBm/Hz",
        "allocation.solver=equal",
        *IDLE,
    ],
    "noise density": ["network.noise=-174 dBm/Hz", "allocation.solver=equal", FADING],
    "fixed ratio, nothing sent": ["learning.method={name: pruning-only, rho: 1}"],
    "entropy": ["accounting.mask_overhead=entropy", "accounting.sparse_efficiency=0.4"],
    "fedavg": [
        "learning.method={name: fedavg, local_epochs: 2, participants: 4}",
        "learning.samples_per_device=45",
    ],
}


@pytest.fixture
def path(tmp_path):
    (tmp_path / "crowd.yaml").write_text(CROWD)
    return tmp_path / "crowd.yaml"


def both(path, changes, monkeypatch):
    """Folders of the same scenario, in lockstep and with one process per device."""
    scenario, folders = load(path, changes), (path.parent / "lockstep", path.parent / "processes")
    setup = set_up(scenario)
    assert not needs_processes(
        setup.cell(simpy.Environment()), setup.scenario.clock.mode, not setup.counts_only
    )
    simulate(scenario, out=folders[0])
    always = lambda cell, clock, trained: True  # noqa: E731
    monkeypatch.setattr(edgesim.runs.play_rounds, "needs_processes", always)
    simulate(scenario, out=folders[1])
    return folders


def files(folder):
    """Contents by name: all but wall times, and the checkpoint's state, whose facts are compared
    through the log.
    """
    return {
        p.relative_to(folder): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and "timing" not in p.name
    }


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_lockstep_and_processes_write_the_same_bytes(path, changes, monkeypatch):
    crowd, single = (files(folder) for folder in both(path, changes, monkeypatch))
    assert crowd.keys() == single.keys()
    assert [str(name) for name in crowd if crowd[name] != single[name]] == []


@pytest.mark.slow
def test_the_cases_meet_what_they_are_meant_for(path):
    """The comparison above would hold for rounds in which nothing happens, too."""
    run = {name: simulate(load(path, changes)) for name, changes in CASES.items()}
    cut = run["deadline"].device_rounds
    assert {"late", "arrived"} == set(cut.status)
    assert (cut.bits_up[cut.finish_s.isna()] > 0).any()  # cut off while they sent
    slow = run["deadline while they compute"].spans
    assert set(slow.phase[slow.end_s == slow.groupby("round").end_s.transform("max")]) >= {
        "personal",
        "upload",
    }
    late = run["equal, fading, late devices"].device_rounds
    assert ((late.status == "late") & late.finish_s.notna()).any()
    assert (run["left out"].device_rounds.status == "infeasible").any()
    assert (run["nobody can"].rounds.selected == 0).any()
    assert (run["idle, absent, changing"].rounds.selected < 11).any()
    assert "idle" in set(run["idle, absent, changing"].spans.phase)
    assert run["fedavg"].rounds.selected.tolist() == [4, 4, 4]
    assert set(run["fixed ratio, nothing sent"].rounds.bits_up) == {0.0}
    blocks = run["fading"].spans
    lasts = (blocks.end_s - blocks.start_s)[blocks.phase == "upload"]
    assert lasts.max() > 3 * 1.3e-3  # several blocks of fading


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_bytes(path, tmp_path, monkeypatch):
    scenario = load(path, [FADING])

    def stop(event):
        if event["kind"] == "round" and event["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(scenario, out=tmp_path / "cut", progress=stop)
    monkeypatch.setattr(
        "edgesim.records.checkpoint.checkpoint_log.MAX_LIST_ROWS", 0
    )  # the log comes back as arrays, as that of many devices does
    simulate(scenario, out=tmp_path / "cut")
    simulate(scenario, out=tmp_path / "whole")
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    again = simulate(scenario, out=tmp_path / "whole")
    assert len(again.spans) == 3 * 11 * 5
    blocks = read_blocks(tmp_path / "whole/checkpoint/log.arrows")
    tables = [next(iter(block.values())) for block in blocks]
    kinds = {type(values) for table in tables for values in table.values()}
    assert kinds == {np.ndarray}


@pytest.mark.parametrize(
    "change",
    [
        "network.uplink.share=reclaim",
        "network.downlink={mode: broadcast, tx_power: 46 dBm}",
        "devices.1.failure_rate=5 Hz",
    ],
)
def test_devices_that_meet_or_fail_are_processes(path, change):
    scenario = load(path, [change, FADING])
    setup = set_up(scenario)
    assert needs_processes(
        setup.cell(simpy.Environment()), setup.scenario.clock.mode, not setup.counts_only
    )
    assert simulate(scenario).rounds.selected.tolist() == [11, 11, 11]


def test_a_method_that_learns_has_processes(path):
    digits = ["learning.dataset=digits", "learning.partition={kind: iid}", "learning.model=mlp"]
    setup = set_up(load(path, digits))
    assert needs_processes(
        setup.cell(simpy.Environment()), setup.scenario.clock.mode, not setup.counts_only
    )


@pytest.mark.slow
def test_a_crowd_costs_no_object_per_device(path):
    """30,000 devices would be seconds and hundreds of MB of processes; here the same round is
    arrays.
    """
    import tracemalloc

    scenario = load(path, ["rounds=1", "devices.0.count=30000", "network.bandwidth=600 GHz"])
    tracemalloc.start()
    run = simulate(scenario)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert run.rounds.selected[0] == 30_005
    assert peak < 30_005 * 1500  # bytes a device; objects of a round take some 6000
    assert devices_csv(set_up(load(path))).count("\n") == 12

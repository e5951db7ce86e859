"""Timing-only runs: nothing is trained, and lockstep rounds write what one process per device writes, byte for byte."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import simpy

import edgesim.runs.run
from edgesim import load, simulate
from edgesim.engine.vectorised.round_loop import needs_processes
from edgesim.errors import RunError, ScenarioError
from edgesim.records.perfetto_trace import MAX_DEVICES, trace_json
from edgesim.records.run_folder import read_blocks
from edgesim.runs.artifacts import devices_csv
from edgesim.runs.catalog import catalog
from edgesim.runs.setup import set_up
from fl.models import architectures as models
from fl.timing_only import NATURAL

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
    assert not needs_processes(setup.cell(simpy.Environment()), trained=not setup.counts_only)
    simulate(scenario, out=folders[0])
    monkeypatch.setattr(edgesim.runs.run, "needs_processes", lambda cell, trained: True)
    simulate(scenario, out=folders[1])
    return folders


def files(folder):
    """Contents by name: all but wall times, and the checkpoint's state, whose facts are compared through the log."""
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


def test_the_costs_are_those_of_a_run_that_learns(path):
    """Same model and samples: the first round of a run on real data takes as long and sends as much."""
    changes = ["rounds=1", "learning.model=mlp"]
    digits = [
        "learning.dataset=digits",
        "learning.partition={kind: iid}",
        "learning.samples_per_device=20",
    ]
    counted, learned = simulate(load(path, changes)), simulate(load(path, changes + digits))
    assert counted.device_rounds.equals(learned.device_rounds)
    assert counted.spans.equals(learned.spans)
    unknown = ["loss", "accuracy", "accuracy_std"]
    assert counted.rounds[unknown].isna().all(axis=None)
    assert learned.rounds[unknown].notna().all(axis=None)


def test_liu_28_for_a_device_by_hand(path):
    """(24), (25), (28): 5 steps on v, 1 + 5 on u, C = 5, f = 1 GHz; 32 bit a weight, rho = 0."""
    hand = [
        "network.channel.path_loss.loss=100 dB",
        "devices.0.count=1",
        "devices.0.cpu.frequency=1 GHz",
        "rounds=1",
    ]
    hand += [
        "learning.method.rho=0",
        "devices.1.count=1",
        "budget.latency_threshold=none",
        "allocation.solver=equal",
    ]
    run = simulate(load(path, hand))
    v, u = 32 * 25 + 32 + 64 * 32 * 25 + 64, 64 * 49 * 128 + 128 + 128 * 10 + 10
    assert (v, u) == (52_096, 402_826)
    compute_s = 5 * (5 * v + 6 * u) / 1e9
    rate_bps = 0.5 * 200e6 * math.log2(1 + 1e-10 * 10**-0.2 / 1e-14)
    assert run.device_rounds.finish_s[0] == pytest.approx(compute_s + 32 * u / rate_bps, rel=1e-12)
    assert run.device_rounds.energy_j[0] == pytest.approx(
        1e-28 * 1e18 * compute_s * 1e9 + 10**-0.2 * 32 * u / rate_bps, rel=1e-12
    )


def test_an_interrupted_run_resumes_to_the_same_bytes(path, tmp_path, monkeypatch):
    scenario = load(path, [FADING])

    def stop(event):
        if event["kind"] == "round" and event["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(scenario, out=tmp_path / "cut", progress=stop)
    monkeypatch.setattr(
        "edgesim.records.run_folder.MAX_LIST_ROWS", 0
    )  # the log comes back as arrays, as that of many devices does
    simulate(scenario, out=tmp_path / "cut")
    simulate(scenario, out=tmp_path / "whole")
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    again = simulate(scenario, out=tmp_path / "whole")
    assert len(again.spans) == 3 * 11 * 5
    kinds = {type(values) for block in read_blocks(tmp_path / "whole/checkpoint/log.arrows") for values in
             next(iter(block.values())).values()}  # fmt: skip
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
    assert needs_processes(setup.cell(simpy.Environment()), trained=not setup.counts_only)
    assert simulate(scenario).rounds.selected.tolist() == [11, 11, 11]


def test_a_method_that_learns_has_processes(path):
    digits = ["learning.dataset=digits", "learning.partition={kind: iid}", "learning.model=mlp"]
    setup = set_up(load(path, digits))
    assert needs_processes(setup.cell(simpy.Environment()), trained=not setup.counts_only)


def test_neither_torch_nor_data_is_needed(path, tmp_path):
    code = f"""
import sys
from edgesim import load, simulate
simulate(load({str(path)!r}), out={str(tmp_path / "run")!r})
print(sorted({{"torch", "sklearn", "networkx", "cvxpy"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "run" / "partition.json").exists()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["final_accuracy"], summary["devices"]) == (None, 11)


def test_every_model_has_the_shape_of_its_natural_data(path):
    assert NATURAL.keys() == models.MODELS.keys()
    for name, (shape, classes) in NATURAL.items():
        held = set_up(load(path, [f"learning.model={name}", "learning.method=fedavg"])).task
        assert (held.architecture.input_shape, held.architecture.classes) == (shape, classes)
        assert held.samples.tolist() == [20] * 11  # one batch each
    assert "none" in [name for name, *_ in catalog("datasets")]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            ["learning.partition={kind: iid}"],
            ScenarioError,
            "learning.partition is not read with dataset: none",
        ),
        (
            ["learning.dataset=digits"],
            ScenarioError,
            "learning.partition is missing; write for instance partition:",
        ),
        (["learning.device=cuda"], ScenarioError, "learning.device is not read with dataset: none"),
        (
            ["learning.method=heterofl"],
            ScenarioError,
            "learning.method.name is a method whose costs depend on",
        ),
        (
            ["learning.method=spafl"],
            ScenarioError,
            "learning.method.name is a method whose costs depend on",
        ),
        (["learning.dataset=nine"], ScenarioError, "learning.partition is missing"),
        (
            ["learning.dataset=nine", "learning.partition={kind: iid}"],
            RunError,
            'there is no data set "nine"',
        ),
    ],
)
def test_what_does_not_go_together_is_said(path, changes, error, words):
    with pytest.raises(error, match=words):
        set_up(load(path, changes))


def test_the_word_none_takes_a_partition_away(path):
    digits = ["learning.dataset=digits", "learning.partition={kind: iid}"]
    plain = load(path)
    changed = load(path, [*digits, "learning.dataset=none", "learning.partition=none"])
    assert plain.digest() == changed.digest()
    (path.parent / "again.yaml").write_text(plain.to_yaml())
    assert load(path.parent / "again.yaml").digest() == plain.digest()


def test_a_trace_shows_the_first_devices_and_says_so():
    count = MAX_DEVICES + 7
    names = ("round", "start_s", "end_s", "bits", "cycles", "energy_j")
    spans = {name: np.zeros(count) for name in names} | {
        "device": np.arange(count),
        "phase": ["upload"] * count,
    }
    trace = json.loads(trace_json(spans))
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(MAX_DEVICES))
    assert trace["otherData"]["devices"].startswith(f"the first {MAX_DEVICES} of {count};")
    few = {name: values[:MAX_DEVICES] for name, values in spans.items()}
    assert "otherData" not in json.loads(trace_json(few))


def test_a_crowd_costs_no_object_per_device(path):
    """100,000 devices would be seconds and hundreds of MB of processes; here the same round is arrays."""
    import tracemalloc

    scenario = load(path, ["rounds=1", "devices.0.count=100000", "network.bandwidth=2000 GHz"])
    tracemalloc.start()
    run = simulate(scenario)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert run.rounds.selected[0] == 100_005
    assert peak < 100_005 * 1500  # bytes a device; objects of a round take some 6000
    assert devices_csv(set_up(load(path))).count("\n") == 12

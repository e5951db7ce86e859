"""`edgesim run`: several schemes and seeds at once, and what it does not load."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


def summaries(folder):
    return {
        path.parent.name: json.loads(path.read_text()) for path in folder.glob("*/summary.json")
    }


def test_several_schemes_by_only(folder, invoke):
    invoke("run", "three.yaml", "--only", "two", "--only", "three", "--out", "here", "-q")
    assert sorted(summaries(folder / "here")) == ["three", "two"]
    odd = invoke("check", "three.yaml", "--only", "one", "--only", "four", code=2)
    assert odd.stderr.endswith('no scheme "four"; it has one, two, three\n')


def test_a_key_that_only_the_chosen_scheme_sets_can_be_removed(folder, invoke):
    """The schemes that --only left out refused it: "the scenario does not set ..."."""
    schemes = "schemes: {one: {learning.method.lr: 0.2}, two: {}}\n"
    (folder / "file.yaml").write_text((folder / "tiny.yaml").read_text() + schemes)
    invoke("run", "file.yaml", "~learning.method.lr", "--only", "one", "--out", "here", "-q")
    assert list(summaries(folder / "here")) == ["one"]
    odd = invoke("check", "file.yaml", "~learning.method.lr", code=2)
    assert "the scenario does not set learning.method.lr" in odd.stderr


@pytest.mark.slow
def test_schemes_that_an_override_makes_equal_are_a_run_each(folder, invoke):
    """They share a digest; the second one was the run of the first, under its label."""
    invoke("run", "three.yaml", "rounds=1", "-q")
    invoke("run", "three.yaml", "rounds=1", "~schemes", "-q")
    done = summaries(folder / "runs" / "tiny")
    assert sorted(each["scheme"] for each in done.values()) == ["fedavg", "one", "three", "two"]
    assert all(name.startswith(f"{each['scheme']},rounds=1-") for name, each in done.items())
    before = sorted(done)
    invoke("run", "three.yaml", "rounds=1", "--only", "two", "-q")
    assert sorted(summaries(folder / "runs" / "tiny")) == before


def test_a_folder_of_an_equal_scheme_is_refused(folder, invoke):
    (folder / "other.yaml").write_text((folder / "tiny.yaml").read_text() + "scheme: other\n")
    invoke("run", "other.yaml", "--out", "here", "-q")
    before = (folder / "here" / "scenario.yaml").read_bytes()
    odd = invoke("run", "tiny.yaml", "--out", "here", code=2)
    assert odd.stderr == (
        "here holds this run under another label: other, not none; use --fresh (in Python "
        "fresh=True) to replace it, or another --out\n"
    )
    assert (folder / "here" / "scenario.yaml").read_bytes() == before
    invoke("run", "tiny.yaml", "--out", "here", "--fresh", "-q")
    assert summaries(folder)["here"]["scheme"] == "fedavg"


def test_runs_with_real_targets_show_a_loss_where_others_have_accuracies(folder, invoke):
    x = np.random.default_rng(1).normal(size=(60, 4))
    np.savez(folder / "real.npz", x_train=x, y_train=x[:, :2], x_test=x, y_test=x[:, :2])
    changes = ("learning.dataset=real.npz", "learning.partition={kind: iid}")
    heads = [
        invoke("run", "tiny.yaml", "evaluate.every=1", *given, "--out", out).stdout.split()
        for given, out in [(changes, "real"), ((), "labels")]
    ]
    columns = [{"accuracy", "loss", "0.8", "0.9"} & set(head) for head in heads]
    assert columns == [{"loss"}, {"accuracy", "0.8", "0.9"}]


@pytest.mark.slow
def test_every_scheme_with_every_seed(folder, invoke):
    shown = invoke("run", "three.yaml", "--only", "one", "--seeds", "1..2", "--out", "here").stdout
    assert {name: each["seed"] for name, each in summaries(folder / "here").items()} == {
        "one-s1": 1,
        "one-s2": 2,
    }
    assert "one, seed 2: round 1/1" in shown and "one, seed 1: here/one-s1" in shown
    invoke("run", "tiny.yaml", "--seeds", "0,3", "-q", "--out", "there")
    assert sorted(summaries(folder / "there")) == ["s0", "s3"]
    inside = invoke("run", "tiny.yaml", "--seeds", "5", "-q", "--out", "there/s0", code=2).stderr
    assert inside.startswith("there/s0 is the folder of a run, in which none is looked for; ")
    both = invoke("run", "tiny.yaml", "--seeds", "0-1", "--seed", "1", code=2)
    assert both.stderr == "command line: --seed and --seeds are both given; keep one\n"


@pytest.mark.slow
def test_a_run_is_made_with_other_seeds_beside_its_folder(folder, invoke):
    invoke("run", "tiny.yaml", "--out", "runs/mine", "-q")
    shown = invoke("run", "runs/mine", "--seeds", "0,1", "-q").stdout
    assert shown == "fedavg, seed 0: runs/mine\nfedavg, seed 1: runs/mine-s1\n"
    assert invoke("run", "runs/mine-s1", "seed=2", "rounds=2", "-q").stdout == "runs/mine-s2\n"
    done = summaries(folder / "runs")
    assert {name: (each["seed"], each["rounds"]) for name, each in done.items()} == {
        "mine": (0, 1),
        "mine-s1": (1, 1),
        "mine-s2": (2, 2),
    }
    assert not list(folder.glob("runs/*/s*/"))


@pytest.mark.slow
@pytest.mark.parametrize("change", ["network.bandwidth=10MHz", "~budget"])
def test_a_run_beside_a_folder_differs_in_seed_and_rounds_alone(folder, invoke, change):
    """It ran there with the other key, and looked like one more seed."""
    invoke("run", "tiny.yaml", "--out", "mine", "-q")
    odd = invoke("run", "mine", "--seed", "1", "rounds=2", change, code=2).stderr
    key = {"n": "network.bandwidth", "~": "budget.latency_threshold"}[change[0]]
    assert odd == f"mine-s1 is for the run of mine with seed 1, whose {key} differs; give --out\n"
    assert invoke("run", "mine", "seed=1", change, "--out", "own", "-q").stdout == "own\n"


@pytest.mark.slow
def test_a_point_stays_what_its_sweep_lists(folder, invoke):
    """It went on to 2 rounds, and stood among points of one round as one of them."""
    invoke("sweep", "tiny.yaml", "--seeds", "0-1", "--workers", "1", "--out", "swept", "-q")
    point = next((folder / "swept" / "points").glob("*-s1-*")).relative_to(folder)
    odd = invoke("run", str(point), "rounds=2", code=2)
    assert odd.stderr == (
        f"{point} is a point of the sweep swept; sweep with rounds=2, or go on with a copy of the "
        "folder\n"
    )
    assert invoke("run", str(point), "-q").stdout == f"{point}\n"
    shutil.copytree(point, "copy")
    assert invoke("run", "copy", "rounds=2", "-q").stdout == "copy\n"
    assert summaries(folder)["copy"]["rounds"] == 2


@pytest.mark.slow
def test_another_seed_of_a_point_is_no_run_among_the_points(folder, invoke):
    """It lay in points/, where the sweep counted it as a leftover and reports showed it."""
    invoke("sweep", "tiny.yaml", "--seeds", "0", "--workers", "1", "--out", "swept", "-q")
    (point,) = (path.relative_to(folder) for path in (folder / "swept" / "points").iterdir())
    own, other = invoke("run", str(point), "--seeds", "0-1", "-q").stdout.splitlines()
    assert own == f"fedavg, seed 0: {point}"
    assert other.startswith("fedavg, seed 1: runs/tiny/fedavg-") and other.endswith("-s1")
    assert invoke("run", str(point), "seed=1", "-q").stdout == f"{other.partition(': ')[2]}\n"
    assert [path.name for path in (folder / "swept" / "points").iterdir()] == [point.name]


@pytest.mark.slow
def test_a_folder_of_runs_is_none(folder, invoke):
    invoke("run", "tiny.yaml", "--seeds", "0,3", "-q", "--out", "two")
    odd = invoke("run", "two", "rounds=2", code=2)
    assert odd.stderr.startswith("two holds several runs and no scenario.yaml; give one of them, ")
    invoke("run", "tiny.yaml", "--seeds", "0,3", "-q", "--out", "two", "rounds=2")
    assert {each["rounds"] for each in summaries(folder / "two").values()} == {2}


@pytest.mark.slow
def test_a_run_whose_traces_are_large_is_used_like_any_other(folder, invoke):
    devices, changes = 3200, []
    for key, unit in {"tx_power": "dBm", "idle_power": "W", "cpu.frequency": "GHz"}.items():
        values = np.random.default_rng(0).uniform(1, 2, devices)
        (folder / f"{key}.txt").write_text(
            "".join(f"{value!r} {unit}\n" for value in values.tolist())
        )
        changes.append(f"devices.0.{key}={{trace: {key}.txt}}")
    invoke("run", "tiny.yaml", f"devices.0.count={devices}", *changes, "--out", "here", "-q")
    assert (folder / "here" / "scenario.yaml").stat().st_size > 256 * 1024
    assert "all 3200 devices" in invoke("check", "here").stdout
    assert "not planned again" not in invoke("verify", "here").stdout
    invoke("run", "here", "rounds=2", "-q")
    assert summaries(folder)["here"]["rounds"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("given", ["here", "here/scenario.yaml"])
def test_a_damaged_scenario_of_a_finished_run_is_not_used(folder, invoke, given):
    invoke("run", "tiny.yaml", "--out", "here", "-q")
    path = folder / "here" / "scenario.yaml"
    path.write_text(path.read_text().replace("noise: -110 dBm", "noise: -100 dBm"))
    for command in (("check",), ("run", "--seed", "3"), ("sweep", "--seeds", "0-1")):
        odd = invoke(command[0], given, *command[1:], code=2)
        assert odd.stderr.startswith("here/scenario.yaml is damaged: its bytes do not match SHA256")
    assert sorted(file.name for file in folder.iterdir()) == ["here", "three.yaml", "tiny.yaml"]
    shutil.copy(path, "edited.yaml")  # it may be used as another scenario
    invoke("run", "edited.yaml", "--out", "edited", "-q")
    invoke("run", "tiny.yaml", "--out", "here", "-q")  # what made the run writes it again
    assert "all 3 devices" in invoke("check", given).stdout


def test_checksums_of_the_users_own_beside_a_scenario_are_not_those_of_a_run(folder, invoke):
    (folder / "mine").mkdir()
    shutil.copy("tiny.yaml", "mine/scenario.yaml")
    (folder / "mine" / "SHA256SUMS").write_text(f"{'0' * 64} *data.bin\n")
    assert "all 3 devices" in invoke("check", "mine/scenario.yaml").stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "run", "sweep"])
def test_a_sweep_and_a_folder_with_scenarios_are_called_what_they_are(folder, invoke, command):
    invoke("sweep", "tiny.yaml", "--seeds", "0-1", "--workers", "1", "--out", "swept", "-q")
    odd = invoke(command, "swept", code=2)
    assert odd.stderr == (
        "swept holds a sweep and no scenario.yaml; give the file that was swept, or one of the "
        "folders in points\n"
    )
    invoke("init", "all/mine")
    odd = invoke(command, "all", code=2)
    assert odd.stderr == "all holds no scenario.yaml; give all/mine, which does\n"


def test_a_scenarios_folder_stands_for_its_file_and_is_no_run(folder, invoke):
    (folder / "mine").mkdir()
    shutil.copy("tiny.yaml", "mine/scenario.yaml")
    shown = invoke("check", "mine").stdout
    assert "all 3 devices can take part" in shown
    legend = r"^gain dB +of the channel .* what interference of other sectors adds to the noise$"
    assert re.search(legend, shown, re.MULTILINE)
    assert "1 point" in invoke("sweep", "mine", "--dry-run").stdout
    assert invoke("list", "runs", "mine", code=2).stderr.startswith("No runs found in mine;")


@pytest.mark.slow
def test_training_that_diverges_is_said_once_when_it_happens(folder, invoke):
    learning = "{dataset: digits, partition: {kind: iid}, samples_per_device: 20, model: mlp,"
    learning += " batch_size: 20, method: {name: fedprox, lr: 1e6, mu: 1, local_steps: 8}}"
    run = "run", "tiny.yaml", "evaluate.every=2", f"learning={learning}", "--out", "run"
    said = "training diverged: the loss after 2 rounds is inf or nan; most likely a step size is "
    said += "too large (lr 1000000.0)"
    first = invoke(*run, "rounds=3")
    assert first.stderr == f"fedprox: warning: {said}\n" and "diverged" not in first.stdout
    longer = invoke(*run, "rounds=5", "-q")  # the run went on
    assert longer.stderr == "" and longer.stdout == f"run\nwarning: {said}\n"
    assert summaries(folder)["run"]["warnings"] == [said]


@pytest.mark.slow
def test_names_beside_a_run_end_in_their_seed(folder, invoke, monkeypatch):
    invoke("run", "tiny.yaml", "--seeds", "0", "--out", "here", "-q")
    monkeypatch.chdir(folder / "here" / "s0")
    assert invoke("run", ".", "--seed", "1", "-q").stdout == "../s1\n"


def test_a_folder_with_a_scenario_stands_for_that_scenario(folder, invoke):
    (folder / "project").mkdir()
    (folder / "tiny.yaml").rename(folder / "project" / "scenario.yaml")
    (shown,) = invoke("run", "project", "-q").stdout.split()
    assert shown.startswith("runs/tiny/fedavg-") and shown.endswith("-s0")


@pytest.mark.slow
def test_a_run_loads_no_library_that_it_does_without(folder):
    """They cost more CPU time than a short run itself."""
    heavy = {"pandas", "sklearn", "scipy.special", "cvxpy", "matplotlib", "networkx"}
    code = f"""
import sys
from edgesim.cli import main
sys.argv = ["edgesim", "run", "tiny.yaml", "learning.dataset=digits", "--out", "here", "-q"]
sys.argv += ["learning.partition={{kind: iid}}"]
try:
    main()
finally:
    print(sorted({heavy} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.stdout == "here\n[]\n", done.stderr


@pytest.mark.slow
def test_a_refusal_waits_for_no_heavy_library(folder):
    """They take seconds to load, and a folder that cannot be used is found out without them."""
    heavy = {"torch", "pandas", "matplotlib", "sklearn", "cvxpy"}
    data = ["learning.dataset=digits", "learning.partition={kind: iid}"]
    refused = [
        ["run", "tiny.yaml", *data, "--out", "tiny.yaml"],
        ["sweep", "tiny.yaml", *data, "seed=1,2", "--out", "tiny.yaml/below"],
        ["report", "nowhere"],
        ["compare", "nowhere", "."],
        ["verify", "nowhere"],
    ]
    code = f"""
import sys
from edgesim.cli.app import app
for command in {refused}:
    try:
        app(args=command)
    except SystemExit as end:
        print(command[0], end.code, sorted({heavy} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.stdout.splitlines() == [f"{command[0]} 2 []" for command in refused], done.stderr
    assert done.stderr.count("\n") == len(refused)

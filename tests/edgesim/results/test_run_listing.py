"""What `edgesim list runs` finds: finished, interrupted, running and damaged runs, and sweeps."""

import fcntl
import json
import os
import re
from shutil import rmtree

import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.cli.app import app
from edgesim.results.run_listing import list_runs
from fl.stored_files import read_sealed_arrays, sealed_arrays


@pytest.fixture
def interrupted(tiny_scenario, tmp_path):
    """A run of three rounds that was stopped in the second."""

    def stop(event):
        if event["kind"] == "round" and event["round"] == 1:
            raise KeyboardInterrupt

    scenario = edgesim.load(tiny_scenario, ["network.bandwidth=7 MHz"])
    with pytest.raises(KeyboardInterrupt):
        edgesim.simulate(scenario, out=tmp_path / "runs" / "half", progress=stop)
    return tmp_path / "runs" / "half"


def states(place):
    return {run.folder.relative_to(place).as_posix(): run.state for run in list_runs(place)}


def test_how_far_each_run_is_and_in_what_it_differs(interrupted, copied_run):
    place = interrupted.parent
    copied_run("runs/done")
    copied_run("runs/torn")
    (place / "torn" / "summary.json").write_text("{")
    found = {run.folder.name: run for run in list_runs(place)}
    assert found["done"].state == "finished" and found["done"].rounds == 3
    assert found["half"].state == "interrupted at round 2 of 3" and found["half"].rounds == 2
    assert found["torn"].state.startswith("damaged: ")
    assert {name: run.keys for name, run in found.items()} == {
        "done": {"network.bandwidth": "5 MHz"},
        "half": {"network.bandwidth": "7 MHz"},
        "torn": {"network.bandwidth": "5 MHz"},
    }
    with open(interrupted / "checkpoint" / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert states(place)["half"] == "running at round 2 of 3"
    (interrupted / "checkpoint" / "lock").unlink()
    os.mkfifo(interrupted / "checkpoint" / "lock")  # which nobody waits for
    assert states(place)["half"] == "interrupted at round 2 of 3"
    state = interrupted / "checkpoint" / "state.safetensors"
    state.replace(state.with_name("previous-state.safetensors"))  # killed before the new one
    assert states(place)["half"] == "interrupted at round 2 of 3"
    (interrupted / "scenario.yaml").unlink()  # as older runs that have not ended
    assert states(place)["half"] == "interrupted at round 2 of 3"
    (interrupted / "scenario.yaml").write_text("learning: [")
    assert "scenario.yaml cannot be read" in states(place)["half"]


@pytest.mark.parametrize("facts", [{"g": "x"}, {"g": None}, {"accuracy": "high"}])
def test_a_checkpoint_that_no_run_wrote_does_not_hide_the_others(interrupted, copied_run, facts):
    copied_run("runs/done")
    state = interrupted / "checkpoint" / "state.safetensors"
    arrays, known = read_sealed_arrays(state)
    state.write_bytes(sealed_arrays(arrays, known | facts))
    result = CliRunner().invoke(app, ["list", "runs", str(interrupted.parent)])
    assert result.exit_code == 0, result.exception
    assert "damaged: state.safetensors: " in result.stdout and "finished" in result.stdout


@pytest.mark.parametrize("text", ["learning: [", "provenance: 3\n", None])
def test_a_finished_run_without_a_readable_scenario_is_damaged(copied_run, text):
    copied_run("runs/done")
    place = copied_run("runs/torn").parent
    torn = place / "torn" / "scenario.yaml"
    torn.unlink()
    if text is not None:
        torn.write_text(text)
    found = {run.folder.name: run for run in list_runs(place)}
    assert found["torn"].state.startswith("damaged: ") and str(torn) in found["torn"].state
    assert (found["torn"].scheme, found["torn"].rounds) == ("fedavg", 3)
    assert found["done"].state == "finished"


@pytest.mark.parametrize("learning", ["{method: fedavg}", "[1]", "fedavg", "{method: [1]}"])
def test_a_foreign_folder_does_not_hide_the_others(copied_run, tmp_path, learning):
    copied_run("runs/done")
    foreign = tmp_path / "runs" / "foreign"
    (foreign / "checkpoint").mkdir(parents=True)
    (foreign / "scenario.yaml").write_text(f"learning: {learning}\n")
    found = {run.folder.name: run.scheme for run in list_runs(tmp_path / "runs")}
    assert found == {"done": "fedavg", "foreign": "foreign"}


def test_runs_of_one_scenario_in_folders_of_their_own_are_told_apart(copied_run, tmp_path):
    for folder, band in (("a/one", "5 MHz"), ("b/two", "7 MHz"), ("c/three", "9 MHz")):
        scenario = copied_run(f"runs/{folder}") / "scenario.yaml"
        for sums in ("SHA256SUMS", "timing.json"):  # the latter says that there were sums
            (scenario.parent / sums).unlink()
        scenario.write_text(scenario.read_text().replace("5 MHz", band))
    scenario.write_text(re.sub(r"^name: .*", "name: other", scenario.read_text(), flags=re.M))
    found = {run.folder.name: run.keys for run in list_runs(tmp_path / "runs")}
    band = "network.bandwidth"
    assert found == {"one": {band: "5 MHz"}, "two": {band: "7 MHz"}, "three": {}}


def test_a_sweep_is_one_line_and_its_points_are_listed_in_its_own_folder(swept):
    (line,) = list_runs(swept.parent)
    assert (line.state, line.seed) == ("2 of 3 points done, 1 failed", "1 seed")
    assert line.keys == {"network.bandwidth": "3 values"}
    assert len(list_runs(swept)) == 3
    rmtree(swept / "points" / "5-0")  # which sweep.json still lists as done
    (line,) = list_runs(swept.parent)
    assert line.state == "1 of 3 points done, 1 missing, 1 failed"


def test_the_command_prints_a_line_for_each_and_refuses_a_folder_for_other_kinds(swept, tmp_path):
    def invoke(*words, code=0):
        result = CliRunner().invoke(app, ["list", *map(str, words)])
        assert result.exit_code == code, result.output
        return result

    printed = invoke("runs", swept).stdout
    assert "2 of 3 points done, 1 failed" in printed and "bandwidth=3 values" in printed
    assert printed.count("finished") == 2
    assert "only edgesim list runs takes a folder" in invoke("methods", swept, code=2).stderr
    assert "is not a folder" in invoke("runs", tmp_path / "nowhere", code=2).stderr


def test_a_runs_folder_in_place_of_a_scenario_goes_on_there(run):
    words = ["run", str(run), "rounds=5", "--quiet"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (0, f"{run}\n"), result.output
    assert json.loads((run / "summary.json").read_text())["rounds"] == 5

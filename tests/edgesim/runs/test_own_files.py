"""The user's own files in a run's folder: which are copied there, and names that are refused."""

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import RunError, ScenarioError
from edgesim.records.checksums import damaged_files
from edgesim.runs import own_files

WHO = "learning.partition={kind: file, file: who.csv}"
WHOLE = "learning.samples_per_device=none"
FEDAVG = ("learning.model=mlp", "learning.method={name: fedavg}")
LOSSES = "time [s],device 0 [dB],device 1 [dB],device 2 [dB],device 3 [dB]\n0,95,96,97,98\n"


@pytest.mark.slow
def test_a_small_file_is_copied_however_large_the_data_set_is_elsewhere(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(own_files, "KEPT_BYTES", 1000)
    x, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    np.savez(tmp_path / "large.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    (tmp_path / "below").mkdir()
    path = tiny.rename(tmp_path / "below" / "tiny.yaml")
    rows = "".join(f"{i},{i % 4}\n" for i in range(40))
    (tmp_path / "below" / "who.csv").write_text("sample,device\n" + rows)
    given = load(path, [WHO, WHOLE, "rounds=1", "learning.dataset=../large.npz", *FEDAVG])
    run = tmp_path / "runs" / "run"
    simulate(given, out=run)
    assert (run / "who.csv").read_text().endswith(rows)
    again = load(run / "scenario.yaml", "rounds=2")
    with pytest.raises(ScenarioError, match=r"is \.\./large\.npz, but there is no file "):
        simulate(again)
    (tmp_path / "runs" / "large.npz").symlink_to(tmp_path / "large.npz")  # as the guide says
    assert simulate(again, out=run).summary["rounds"] == 2


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("network.channel={trace: measures.csv}", "network.channel.trace is measures.csv"),
        (
            "network.channel.path_loss={model: trace, file: ./rounds.csv}",
            "network.channel.path_loss.file is ./rounds.csv",
        ),
        (
            "learning.partition={kind: file, file: devices.csv}",
            "learning.partition.file is devices.csv",
        ),
        (
            "devices.0.presence={kind: trace, file: backhaul.csv}",
            "devices.0.presence.file is backhaul.csv",
        ),
        (
            "learning.partition={kind: file, file: checkpoint/who.csv}",
            "learning.partition.file is checkpoint/who.csv",
        ),
    ],
)
def test_a_file_named_as_one_of_the_run_is_refused(tiny, tmp_path, change, key):
    """Its copy was replaced by the run's file, or replaced it."""
    (tmp_path / "checkpoint").mkdir()
    for name in ("measures.csv", "rounds.csv"):
        (tmp_path / name).write_text(LOSSES)
    for name in ("devices.csv", "checkpoint/who.csv"):
        (tmp_path / name).write_text("sample,device\n0,0\n1,1\n2,2\n3,3\n")
    (tmp_path / "backhaul.csv").write_text("device,start_s,end_s\n0,0,9\n")
    scenario = load(tiny, [change, WHOLE])
    problem = "whose copy in the run's folder would have the name of a file of the run; rename it"
    with pytest.raises(ScenarioError, match=f"^command line: {key}, {problem}"):
        simulate(scenario, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_copied_may_have_any_name(tiny, tmp_path):
    (tmp_path / "below").mkdir()
    path = tiny.rename(tmp_path / "below" / "tiny.yaml")
    (tmp_path / "devices.csv").write_text("sample,device\n0,0\n1,1\n2,2\n3,3\n")
    change = "learning.partition={kind: file, file: ../devices.csv}"
    run = simulate(load(path, [change, WHOLE, "rounds=1"]), out=tmp_path / "out")
    assert (tmp_path / "out" / "devices.csv").read_text().startswith("device,distance_m")
    assert run.summary["rounds"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data.npz", "mine/data.npz", "scenario.yaml"])
def test_a_copy_that_was_changed_since_is_refused(tiny, tmp_path, name):
    """Another run took changed data or a changed scenario for those of the finished run."""
    x, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    data = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    file = name if name.endswith(".npz") else "data.npz"
    (tmp_path / file).parent.mkdir(exist_ok=True)
    np.savez(tmp_path / file, **data)
    iid = "learning.partition={kind: iid}"
    simulate(
        load(tiny, [WHOLE, iid, "rounds=1", f"learning.dataset={file}", *FEDAVG]),
        out=tmp_path / "run",
    )
    assert f"  {file}\n" in (tmp_path / "run" / "SHA256SUMS").read_text()
    above = tmp_path / "above.yaml"
    above.write_text("base: run/scenario.yaml\nseed: 5\n")
    assert simulate(load(above)).summary["rounds"] == 1
    if name == file:
        np.savez(tmp_path / "run" / name, **data | {"x_train": x + 1})
    else:
        (tmp_path / "run" / name).write_text((tmp_path / "run" / name).read_text() + "\n")
    for path in (above, tmp_path / "run" / "scenario.yaml"):
        with pytest.raises(RunError) as refused:
            simulate(load(path))
        problem, cure, other = str(refused.value).split("; ")
        assert problem.endswith(f"run/{name} is damaged: its bytes do not match SHA256SUMS")
        assert cure.startswith("repeat the command that made the run, and it is written anew")
        assert other == "to run what was changed on purpose, copy it to another folder"
    if name == "scenario.yaml":  # both are true
        (tmp_path / "copy").mkdir()
        changed = (tmp_path / "run" / name).rename(tmp_path / "copy" / name)
        (tmp_path / "copy" / "data.npz").write_bytes((tmp_path / "data.npz").read_bytes())
        assert simulate(load(changed)).summary["rounds"] == 1
    made_again = [WHOLE, iid, "rounds=1", f"learning.dataset={file}", *FEDAVG]
    simulate(load(tiny, made_again), out=tmp_path / "run")
    assert damaged_files(tmp_path / "run") == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True])
def test_a_run_of_data_from_python_goes_on_from_the_copy_in_its_folder(tiny, tmp_path, words):
    """It was refused as another run, of other data."""
    x, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    ids = np.arange(40) % 4
    data = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    data["clients_train"] = np.array([f"user{i}" for i in ids]) if words else ids
    changes = [WHOLE, "learning.partition={kind: natural}", *FEDAVG]
    runs = [
        simulate(load(tiny, [*changes, f"rounds={n}"]), data=data, out=tmp_path / f"run{n}")
        for n in (1, 2)
    ]
    resumed = load(tmp_path / "run1" / "scenario.yaml", "rounds=2")
    assert simulate(resumed, out=tmp_path / "run1").rounds.equals(runs[1].rounds)
    assert damaged_files(tmp_path / "run1") == []

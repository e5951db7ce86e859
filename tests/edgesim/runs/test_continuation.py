"""Runs that go on after their last round, and those that may not."""

import json
from pathlib import Path

import pytest

from edgesim import load, simulate
from edgesim.errors import RunError, ScenarioError
from edgesim.results.run_files import read_scenario

SCENARIO = """
name: tiny
rounds: 3
network:
  bandwidth: 1.5 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 100 dB, 107 dB]},
    fading: {kind: rayleigh, coherence: 7 ms}}
devices:
  - {count: 3, tx_power: 23 dBm, availability: 0.9,
     cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 100}}
budget: {latency_threshold: 20 ms}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 30
  model: mlp
  batch_size: 10
  method: {name: liu, personal_lr: 0.05, global_lr: 0.05}
evaluate: {every: 2}
"""
NOTHING_LEARNED = ["learning={dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}"]
BANDIT = ["learning.method={name: oort, participants: 2}", "allocation.solver=equal"]


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file but the wall seconds and the checkpoint."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} | {"timing.json": b""}


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["synchronous", "deadline"])
@pytest.mark.parametrize("changes", [[], NOTHING_LEARNED, BANDIT], ids=["liu", "none", "oort"])
def test_more_rounds_end_with_the_bytes_of_a_run_that_had_them_from_the_start(
    tiny, tmp_path, clock, changes
):
    """Round 2 is evaluated as the last of 3 rounds, and is not evaluated in a run of 5."""
    changes = [f"clock.mode={clock}", *changes]
    simulate(load(tiny, changes), out=tmp_path / "raised")
    seen = []
    raised = simulate(
        load(tiny, [*changes, "rounds=5"]),
        out=tmp_path / "raised",
        progress=lambda event: seen.append(event["round"]) if event["kind"] == "round" else None,
    )
    assert seen == [3, 4]
    whole = simulate(load(tiny, [*changes, "rounds=5"]), out=tmp_path / "whole")
    assert files_of(tmp_path / "raised") == files_of(tmp_path / "whole")
    for table in ("rounds", "device_rounds", "spans", "scores", "measures"):
        assert getattr(raised, table).equals(getattr(whole, table))
    again = simulate(load(tiny, [*changes, "rounds=5"]), out=tmp_path / "raised")
    assert again.rounds.equals(whole.rounds)  # read back from the checkpoint


@pytest.mark.slow
def test_a_run_goes_on_more_than_once(tiny, tmp_path):
    for rounds in (1, 3, 5, 6):
        simulate(load(tiny, [*BANDIT, f"rounds={rounds}"]), out=tmp_path / "raised")
    simulate(load(tiny, [*BANDIT, "rounds=6"]), out=tmp_path / "six")
    assert files_of(tmp_path / "raised") == files_of(tmp_path / "six")


@pytest.mark.slow
def test_a_continuation_that_is_interrupted_resumes_and_was_not_finished_meanwhile(tiny, tmp_path):
    changes = [*NOTHING_LEARNED, "rounds=3"]
    out = tmp_path / "out"
    simulate(load(tiny, changes), out=out)

    def stop(event):
        if event["kind"] == "round" and event["round"] == 4:
            raise KeyboardInterrupt

    longer = load(tiny, [*NOTHING_LEARNED, "rounds=7"])
    with pytest.raises(KeyboardInterrupt):
        simulate(longer, out=out, progress=stop)
    assert not (out / "summary.json").exists()
    assert read_scenario(out / "scenario.yaml")[1]["rounds"] == 7
    with pytest.raises(RunError, match="holds this run with 7 rounds, and rounds is 3"):
        simulate(load(tiny, changes), out=out)
    simulate(longer, out=out)
    simulate(longer, out=tmp_path / "whole")
    assert files_of(out) == files_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["rounds=2"], "holds this run with 3 rounds, and rounds is 2; rounds can only be raised"),
        (
            ["network.bandwidth=3 MHz", "rounds=5"],
            "holds another run: its network.bandwidth is 1.5 MHz, not 3 MHz; use --fresh",
        ),
        (["seed=4"], "holds another run: its seed is 0, not 4; use --fresh"),
        (
            ["learning.method.lr=0.2", "budget.latency_threshold=30 ms"],
            r"its budget.latency_threshold is 20 ms, not 30 ms \(and 1 more differ\)",
        ),
    ],
)
def test_what_cannot_go_on_is_one_sentence_that_names_the_key(tiny, tmp_path, changes, sentence):
    simulate(load(tiny, NOTHING_LEARNED), out=tmp_path / "out")
    with pytest.raises(RunError, match=sentence) as error:
        simulate(load(tiny, [*NOTHING_LEARNED, *changes]), out=tmp_path / "out")
    assert "\n" not in str(error.value)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["rounds"] == 3


def test_a_parameter_that_follows_from_the_rounds_is_written_and_makes_another_run(tiny, tmp_path):
    """Masks of FedSpa move until the last round: one more round is another run from round 0 on."""
    changes = ["learning.method={name: fedspa, local_steps: 1}", "allocation.solver=equal"]
    short, out = ["rounds=2", "budget.latency_threshold=none", *changes], tmp_path / "out"
    simulate(load(tiny, short), out=out)
    assert read_scenario(out / "scenario.yaml")[1]["learning"]["method"]["moving_rounds"] == 2
    with pytest.raises(RunError, match=r"moving_rounds is 2, not 3; use --fresh"):
        simulate(load(tiny, [*short, "rounds=3"]), out=out)
    before = files_of(out)
    simulate(load(tiny, [*short, "learning.method.moving_rounds=2"]), out=out)  # the same run
    assert files_of(out) == before


@pytest.mark.slow
def test_a_parameter_that_stays_as_for_fewer_rounds_is_a_warning(tiny, tmp_path):
    """The resolved scenario has moving_rounds, so that a run of its folder keeps it."""
    common, out, seen = ["network.channel.fading=none", "allocation.solver=equal"], tmp_path, []
    method = "learning.method={name: fedspa, local_steps: 1}"
    simulate(load(tiny, ["rounds=2", *common, method]), out=out / "short")
    for rounds in (3, 3, 4):
        longer = load(out / "short" / "scenario.yaml", [f"rounds={rounds}"])
        summary = simulate(longer, out=out / "short", progress=seen.append).summary
        assert summary["warnings"] == [
            "learning.method.moving_rounds stays 2, as for 2 rounds; "
            "a run of 3 rounds from the start has 3"
        ]
    assert [each["text"] for each in seen if each["kind"] == "warning"] == 2 * summary["warnings"]
    written = [*common, method, "learning.method.moving_rounds=1"]
    for rounds in (2, 3):
        run = simulate(load(tiny, [*written, f"rounds={rounds}"]), out=out / "written")
    assert run.summary["warnings"] == []


def test_other_versions_are_named(tiny, tmp_path, monkeypatch):
    scenario = load(tiny, NOTHING_LEARNED)
    simulate(scenario, out=tmp_path / "out")
    for module in ("fingerprint.versions", "continuation.installed_versions"):
        monkeypatch.setattr(f"edgesim.runs.{module}", lambda: {"torch": "0.0"})
    with pytest.raises(RunError, match=r"it was made with torch \d.*, not 0.0; use --fresh"):
        simulate(scenario, out=tmp_path / "out")


def test_a_run_that_cannot_train_stays_finished(tiny, tmp_path, monkeypatch):
    def refuse(setup):
        raise ScenarioError("no images")

    simulate(load(tiny, NOTHING_LEARNED), out=tmp_path / "out")
    monkeypatch.setattr("edgesim.runs.continuation.check_before_training", refuse)
    monkeypatch.setattr("edgesim.runs.prepared_run.check_before_training", refuse)
    with pytest.raises(ScenarioError, match="no images"):
        simulate(load(tiny, [*NOTHING_LEARNED, "rounds=5"]), out=tmp_path / "out")
    assert (tmp_path / "out" / "summary.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["liu", "fedlps", "refl"])
def test_the_resolved_scenario_holds_what_its_method_used_and_gives_the_same_bytes(
    tiny, tmp_path, name
):
    scenario = load(tiny, [f"learning.method={name}", "rounds=1"])
    simulate(scenario, seed=1, out=tmp_path / "a")
    resolved = load(tmp_path / "a" / "scenario.yaml")
    assert len(resolved.learning.method.params) > 5
    assert scenario.learning.method.params == {}
    simulate(resolved, out=tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    # it is known as the same run, so that it goes on in the same folder
    simulate(resolved, out=tmp_path / "a", progress=lambda event: pytest.fail("computed again"))

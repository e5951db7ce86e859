"""What a run says of every device and of its method: scores and measures, in memory, in its
folder, after a break.
"""

import numpy as np
import pandas as pd
import pytest

from edgesim.records.checkpoint.run_checkpoint import OPTIONAL, RUN_FILES
from edgesim.results.finished_run import read_run
from edgesim.runs import prepared_run as run_module
from edgesim.runs.run import simulate
from edgesim.runs.setup import set_up
from edgesim.scenario.loader import load
from edgesim.tables.table_reading import read_event_log
from fl.contracts import Scores

TEXT = """\
name: cell
rounds: 6
network: {bandwidth: 20 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - {count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 2}
  model: mlp
  batch_size: 20
  method: {name: fedavg, local_steps: 2, lr: 0.1}
allocation: {solver: equal}
evaluate: {every: 4}
"""
FILES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet", "measures.csv")


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "cell.yaml").write_text(TEXT)
    return load(tmp_path / "cell.yaml")


@pytest.fixture
def density(monkeypatch):
    """Every evaluation also says a density of 1 / (rounds done) and a number that is not known."""
    plain = run_module.evaluate_state

    def evaluate_state(setup, state):
        scores = plain(setup, state)
        return Scores(scores.loss, scores.accuracy, {"density": 1 / state.g, "empty": np.nan})

    monkeypatch.setattr(run_module, "evaluate_state", evaluate_state)


def test_scores_are_those_that_the_rounds_average(scenario, tmp_path):
    run = simulate(scenario, out=tmp_path / "out")
    assert run.scores["round"].tolist() == [3, 3, 3, 5, 5, 5]
    assert run.scores.device.tolist() == [0, 1, 2] * 2
    by_round = run.scores.groupby("round")
    evaluated = run.rounds.set_index("round").loc[[3, 5]]
    assert by_round.accuracy.mean().tolist() == pytest.approx(
        evaluated.accuracy.tolist(), rel=1e-12
    )
    assert by_round.accuracy.std(ddof=0).tolist() == pytest.approx(
        evaluated.accuracy_std.tolist(), rel=1e-12
    )
    assert by_round.loss.mean().tolist() == pytest.approx(evaluated.loss.tolist(), rel=1e-12)
    written = read_event_log(run.folder)
    pd.testing.assert_frame_equal(written["scores"], run.scores)
    assert len(run.measures) == len(written["measures"]) == 0


def test_measures_of_evaluated_rounds(scenario, density, tmp_path):
    run = simulate(scenario, out=tmp_path / "out")
    assert run.measures["round"].tolist() == [3, 3, 5, 5]
    assert run.measures.name.tolist() == ["density", "empty"] * 2
    np.testing.assert_array_equal(run.measures.value, [1 / 4, np.nan, 1 / 6, np.nan])
    pd.testing.assert_frame_equal(read_event_log(run.folder)["measures"], run.measures)
    assert set(RUN_FILES) - OPTIONAL <= {path.name for path in run.folder.iterdir()}
    reported = read_run(run.folder)
    pd.testing.assert_frame_equal(reported.scores, run.scores)
    pd.testing.assert_frame_equal(reported.measures, run.measures)


class Stopped(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("last", [2, 3, 4])
def test_a_run_that_was_stopped_ends_with_the_same_bytes(scenario, density, tmp_path, last):
    def stop(event):
        if event["kind"] == "round" and event["round"] == last:
            raise Stopped

    whole = simulate(scenario, out=tmp_path / "whole")
    with pytest.raises(Stopped):
        simulate(scenario, out=tmp_path / "stopped", progress=stop)
    resumed = simulate(scenario, out=tmp_path / "stopped")
    for file in FILES:
        assert (whole.folder / file).read_bytes() == (resumed.folder / file).read_bytes()
    finished = simulate(
        scenario, out=tmp_path / "stopped", progress=lambda event: pytest.fail("computed again")
    )
    pd.testing.assert_frame_equal(finished.scores, whole.scores)
    pd.testing.assert_frame_equal(finished.measures, whole.measures)


def test_a_finished_folder_without_the_two_tables_gets_them(scenario, density, tmp_path):
    run = simulate(scenario, out=tmp_path / "out")
    before = {file: (run.folder / file).read_bytes() for file in FILES}
    for file in ("scores.parquet", "measures.csv"):
        (run.folder / file).unlink()
    simulate(scenario, out=tmp_path / "out")
    assert {file: (run.folder / file).read_bytes() for file in FILES} == before


def test_conventions_and_the_division_of_data_reach_the_learning(scenario, tmp_path):
    counted = set_up(scenario).task
    assert (counted.accounting.backward, counted.accounting.count_biases) == ("counted", False)
    changes = ["accounting={backward: twice, count_biases: true, bits_per_weight: 16}"]
    changes += ["learning.partition={kind: dirichlet, alpha: 0.2, min_samples: 450}"]
    papers = set_up(load(tmp_path / "cell.yaml", changes)).task
    assert (papers.accounting.backward, papers.accounting.count_biases) == ("twice", True)
    assert papers.accounting.bits_per_weight == 16
    plain = set_up(
        load(tmp_path / "cell.yaml", ["learning.partition={kind: dirichlet, alpha: 0.2}"])
    ).task
    assert plain.samples.min() < 450 <= papers.samples.min()

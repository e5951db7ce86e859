"""Runs and sweeps read back as stacked tables."""

import json
import shutil

import pandas as pd
import pytest

import edgesim
from edgesim.errors import ResultsError
from edgesim.scenario.loader import expand

BAND = "network.bandwidth"


def test_a_run_read_back_has_the_tables_of_the_run_itself(tiny_scenario, tmp_path):
    run = edgesim.simulate(edgesim.load(tiny_scenario), seed=3, out=tmp_path / "a")
    loaded = edgesim.load_run(tmp_path / "a")
    assert loaded.keys == [] and loaded.folders == [tmp_path / "a"]
    assert repr(loaded) == f"<1 run of {tmp_path / 'a'}>"
    for name in ("rounds", "device_rounds", "spans"):
        table = getattr(loaded, name)
        assert list(table.columns[:2]) == ["scheme", "seed"]
        assert set(table["scheme"]) == {"fedavg"} and set(table["seed"]) == {3}
        pd.testing.assert_frame_equal(table.drop(columns=["scheme", "seed"]), getattr(run, name))
    assert loaded.scores.empty and list(loaded.devices["device"]) == [0, 1]
    point = loaded.points.iloc[0]
    assert point["time_s"] == run.summary["time_s"] == run.rounds["time_s"].iloc[-1]
    assert (point["rounds"], point["folder"], point["status"]) == (3, ".", "done")
    assert pd.isna(point["final_accuracy"]) and "time_to_0.8_s" in loaded.points


@pytest.mark.slow
def test_several_runs_are_stacked_by_seed_and_by_the_keys_in_which_they_differ(four_runs):
    loaded = edgesim.load_run(four_runs)
    assert loaded.keys == [BAND] and loaded.units == {BAND: "Hz"}
    rows = loaded.points[["scheme", "seed", BAND, "folder"]].to_numpy().tolist()
    assert rows == [
        ["fedavg", 0, 10e6, "10-0"], ["fedavg", 1, 10e6, "10-1"],
        ["fedavg", 0, 5e6, "5-0"], ["fedavg", 1, 5e6, "5-1"],
    ]  # fmt: skip
    means = loaded.rounds.groupby([BAND, "seed"])["latency_s"].mean().unstack()
    assert means.shape == (2, 2) and (means.loc[5e6] > means.loc[10e6]).all()
    assert len(loaded.device_rounds) == 4 * 3 * 2


@pytest.mark.parametrize(
    ("noises", "column", "unit"),
    [
        (["-110 dBm", "-170 dBm/Hz"], ["-110 dBm", "-170 dBm/Hz"], ""),
        (["-170 dBm/Hz", "-180 dBm/Hz"], [1e-20, 1e-21], "W/Hz"),
    ],
)
def test_noise_in_one_column_is_power_or_density_and_else_stays_as_written(
    tiny_scenario, tmp_path, noises, column, unit
):
    for i, noise in enumerate(noises):
        scenario = edgesim.load(tiny_scenario, [f"network.noise={noise}"])
        edgesim.simulate(scenario, out=tmp_path / str(i))
    loaded = edgesim.load_run(tmp_path)
    assert loaded.points["network.noise"].tolist() == pytest.approx(column)
    assert loaded.units == loaded.points.attrs["units"] == {"network.noise": unit}
    assert len(loaded.rounds.groupby("network.noise")) == 2


@pytest.mark.slow
def test_schemes_of_several_runs_come_in_the_order_of_their_file(tiny_scenario, tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(tiny_scenario.read_text() + "schemes: {wide: {}, narrow: {rounds: 2}}\n")
    for label, scenario in expand(path):
        edgesim.simulate(scenario, out=tmp_path / "runs" / label)
    assert edgesim.load_run(tmp_path / "runs").points["scheme"].tolist() == ["wide", "narrow"]
    for label in ("wide", "narrow"):  # as older runs have it
        file = tmp_path / "runs" / label / "scenario.yaml"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "scheme_position" not in line))
        (file.parent / "SHA256SUMS").unlink(), (file.parent / "timing.json").unlink()
    assert edgesim.load_run(tmp_path / "runs").points["scheme"].tolist() == ["narrow", "wide"]


@pytest.mark.slow
def test_runs_of_a_scheme_stay_together_where_only_some_know_their_place(tiny_scenario, tmp_path):
    """Of wide, which is the first of its file, the run of seed 0 is older; files do not mix."""
    path = tmp_path / "two.yaml"
    path.write_text(tiny_scenario.read_text() + "schemes: {wide: {}, narrow: {rounds: 2}}\n")
    for label, scenario in expand(path):
        for seed in (0, 1):
            scheme = scenario.model_copy(update={"scheme_position": None} if seed == 0 else {})
            edgesim.simulate(scheme, seed=seed, out=tmp_path / "runs" / f"{label}-{seed}")
        other = scenario.model_copy(update={"name": "early"}).with_rounds(4)
        edgesim.simulate(other, out=tmp_path / "runs" / f"other-{label}")
    assert edgesim.load_run(tmp_path / "runs").points["folder"].tolist() == [
        "other-wide", "other-narrow", "wide-0", "wide-1", "narrow-0", "narrow-1"
    ]  # fmt: skip


@pytest.mark.slow
def test_runs_that_differ_in_their_targets_only_are_one_run_with_all_of_them(
    tiny_scenario, tmp_path
):
    for name, targets in (("a", "[0.9]"), ("b", "[0.3, 0.9]"), ("c", "[0.5]")):
        scenario = edgesim.load(tiny_scenario, [f"evaluate.targets={targets}"])
        edgesim.simulate(scenario, out=tmp_path / name)
    loaded = edgesim.load_run(tmp_path)
    assert loaded.keys == [] and loaded.folders == [tmp_path / "a"] and len(loaded.rounds) == 3
    assert [name for name in loaded.points if name.startswith("time_to")] == [
        "time_to_0.9_s", "time_to_0.3_s", "time_to_0.5_s"
    ]  # fmt: skip
    (tmp_path / "c" / "SHA256SUMS").unlink(), (tmp_path / "c" / "timing.json").unlink()
    summary = tmp_path / "c" / "summary.json"
    summary.write_text(summary.read_text().replace('"devices": 2', '"devices": 1'))
    with pytest.raises(ResultsError, match=r"a and .*c are the same scheme"):  # other figures
        edgesim.load_run(tmp_path)


def test_equal_runs_are_refused_and_so_is_a_folder_without_a_finished_one(run, copied_run):
    copied_run("b")
    with pytest.raises(ResultsError, match=r'a and .*b are the same scheme "fedavg" .* seed 0'):
        edgesim.load_run(run.parent)
    (run / "summary.json").unlink()
    with pytest.raises(ResultsError, match=r"No finished run in .*/a; run it again to resume"):
        edgesim.load_run(run)
    with pytest.raises(ResultsError, match=r"holds no sweep.json"):
        edgesim.load_sweep(run)


def test_a_sweep_has_a_row_for_every_point_and_rounds_of_those_that_are_done(swept):
    loaded = edgesim.load_sweep(swept)
    points = loaded.points
    assert points[BAND].tolist() == [5e6, 10e6, 1e9]
    assert points["status"].tolist() == ["done", "done", "failed"]
    assert points["rounds"].tolist()[:2] == [3, 3] and pd.isna(points["rounds"].iloc[2])
    assert loaded.rounds.groupby(BAND).size().to_dict() == {5e6: 3, 10e6: 3}
    # a sweep.json may be older than the folders beside it
    shutil.rmtree(swept / "points" / "5-0")
    assert edgesim.load_sweep(swept).points["status"].tolist() == ["missing", "done", "failed"]


def test_a_swept_key_has_its_values_for_points_that_have_not_ended_too(swept):
    """The key figures have columns of the same names."""
    text = (swept / "sweep.json").read_text().replace("network.bandwidth", "rounds")
    for i, band in enumerate(("5MHz", "10MHz", "1GHz"), 3):
        text = text.replace(f'"{band}"', f'"{i}"')
    (swept / "sweep.json").write_text(text)
    points = edgesim.load_sweep(swept).points
    assert points["rounds"].tolist() == [3, 4, 5] and list(points)[2] == "rounds"
    assert points["rounds"].dtype == "Int64"


def test_a_notebook_shows_the_points_and_plain_text_the_folder(swept):
    loaded = edgesim.load_sweep(swept)
    assert repr(loaded) == f"<2 of 3 runs of {swept}, by {BAND}>"
    html = loaded._repr_html_()
    assert "<th>network.bandwidth</th>" in html and "<td>failed</td>" in html
    assert html.count("<tr") == 4


def test_a_run_in_memory_is_shown_too(tiny_scenario):
    run = edgesim.simulate(edgesim.load(tiny_scenario))
    assert repr(run) == "<run fedavg, seed 0, 3 rounds>"
    html = run._repr_html_()
    assert "<b>run in memory</b>" in html and f"<td>{run.summary['time_s']:.4g}</td>" in html


def test_a_sweep_whose_points_are_all_infeasible_is_not_to_be_run_again(tmp_path):
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    point = {"folder": "points/a", "label": "joint", "values": {}, "seed": 0}
    listed = {"points": [point | {"status": "infeasible", "error": "give more"}], "linked": []}
    (sweep / "sweep.json").write_text(json.dumps(listed))
    sentence = r"No finished run in .*sweep \(1 infeasible\); the same sweep says for each point"
    with pytest.raises(ResultsError, match=sentence):
        _ = edgesim.load_sweep(sweep).rounds
    with pytest.raises(ResultsError, match=sentence):
        edgesim.load_run(sweep)
    with pytest.raises(ResultsError, match=sentence):
        edgesim.plot.report(sweep)


def test_what_is_no_folder_is_refused_with_the_tables_that_a_run_lacks(finished_folder):
    def tables(of):
        return {
            name
            for name in dir(of)
            if name[0] != "_" and isinstance(getattr(of, name), pd.DataFrame)
        }

    run = edgesim.simulate(edgesim.load(finished_folder / "scenario.yaml"))
    lacking = tables(edgesim.load_run(finished_folder)) - tables(run)
    assert lacking == {"points", "devices"}
    with pytest.raises(
        ResultsError, match=r"^int is no folder; give a folder .* points and devices"
    ):
        edgesim.load_run(5)

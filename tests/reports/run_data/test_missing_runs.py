"""Points of a sweep that a report lacks or leaves out."""

import json

import pytest

from edgesim.errors import ResultsError
from edgesim.results.run_search import find_runs
from reports import figure_catalog
from reports.html_page import write_report
from reports.run_data.missing_runs import listed_folders, missing_runs, superseded_runs
from reports.run_data.scheme_grouping import load_schemes


@pytest.mark.slow
def test_missing_points_are_said_with_their_reason(write_sweep, tmp_path):
    sweep = write_sweep(seeds=(0,))
    listed = json.loads((sweep / "sweep.json").read_text())
    first, second, third = listed["points"][:3]
    first |= {"status": "failed", "error": "MemoryError: no room"}
    for point in (first, second, third):
        (sweep / point["folder"] / "summary.json").unlink()
    for file in (sweep / third["folder"]).iterdir():
        file.unlink()
    third["status"] = "infeasible"
    (sweep / "sweep.json").write_text(json.dumps(listed))
    found = missing_runs(find_runs([sweep]))
    assert [(one.status, one.error) for one in found] == [
        ("failed", "MemoryError: no room"), ("unfinished", ""), ("infeasible", ""),
    ]  # fmt: skip
    assert (
        found[1].what == "liu: budget.latency_threshold=15ms, network.bandwidth=20 MHz"
        and found[1].seed == "0"
    )


@pytest.mark.slow
def test_a_finished_run_is_not_missing_whatever_the_file_says(write_sweep):
    sweep = write_sweep(seeds=(0,))
    text = (sweep / "sweep.json").read_text().replace('"done"', '"missing"')
    (sweep / "sweep.json").write_text(text)
    assert missing_runs(find_runs([sweep])) == []


@pytest.mark.slow
def test_points_of_an_earlier_sweep_are_reported_unless_a_listed_one_is_the_same(
    write_sweep, write_run, tmp_path, monkeypatch
):
    sweep = write_sweep(seeds=(0,), thresholds=("15 ms",), bands=("10 MHz",))
    extra = "budget: {latency_threshold: 15 ms}"
    same = {
        "scheme": "liu",
        "method": "liu",
        "targets": ("0.2",),
        "extra": extra,
        "accuracy": (0.1,) * 4,
    }
    write_run(sweep / "points" / "old", bandwidth="10 MHz", **same)
    write_run(sweep / "points" / "other", bandwidth="7 MHz", **same)
    with pytest.raises(ResultsError, match="same seed 0"):
        load_schemes(find_runs([sweep / "points"]).finished)
    found = find_runs([sweep])
    schemes = load_schemes(found.finished, listed_folders(found))
    reported = [run.folder for scheme in schemes for run in scheme.runs]
    assert {folder.name for folder in reported} == {
        "liu-15ms-10MHz-0",
        "fedavg-15ms-10MHz-0",
        "other",
    }
    assert [(one.what, one.status) for one in superseded_runs(found, reported)] == [
        ("old", "superseded")
    ]
    monkeypatch.setattr(figure_catalog, "report_figures", lambda schemes, options: ([], []))
    html = write_report([sweep], tmp_path / "out").read_text(encoding="utf-8")
    assert "<td>superseded</td>" in html and "Not complete" not in html  # nothing is lacking for it


def test_a_sweep_without_a_finished_point(write_sweep, tmp_path):
    sweep = write_sweep(seeds=(0,), thresholds=("15 ms",), bands=("10 MHz",))
    for summary in sweep.rglob("summary.json"):
        summary.unlink()
    with pytest.raises(ResultsError, match=r"No finished run in .*sweep \(2 unfinished\)"):
        write_report([sweep], tmp_path / "out")
    assert not (tmp_path / "out").exists()

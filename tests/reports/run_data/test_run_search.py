"""The search for run folders."""

import pytest

from reports.run_data.run_files import ReportError
from reports.run_data.run_search import find_runs


def test_runs_are_found_below_a_folder_once(tmp_path, write_run):
    one = write_run(tmp_path / "runs" / "demo" / "a")
    two = write_run(tmp_path / "runs" / "demo" / "b", seed=1)
    (one / "checkpoint").mkdir()
    (one / "checkpoint" / "summary.json").write_text("{}")
    assert find_runs([tmp_path / "runs", one]) == ([one, two], [], [])


def test_no_runs(tmp_path):
    with pytest.raises(ReportError, match=r"No runs found in .*empty"):
        (tmp_path / "empty").mkdir()
        find_runs([tmp_path / "empty"])
    with pytest.raises(ReportError, match="is not a folder"):
        find_runs([tmp_path / "nowhere"])


def test_an_unfinished_run_is_named(tmp_path, write_run):
    run = write_run(tmp_path / "a")
    (run / "summary.json").unlink()
    assert find_runs([run]) == ([], [run], [])
    other = write_run(tmp_path / "b")
    assert find_runs([tmp_path]) == ([other], [run], [])
    (interrupted := tmp_path / "c" / "checkpoint").mkdir(parents=True)
    (interrupted / "log.arrows").write_bytes(b"")
    assert find_runs([tmp_path]).unfinished == [run, tmp_path / "c"]

"""The search for run folders."""

import pytest

from edgesim.errors import ResultsError
from edgesim.results.run_search import find_runs


def test_runs_are_found_below_a_folder_once(tmp_path, copied_run):
    one = copied_run("runs/demo/a")
    two = copied_run("runs/demo/b")
    (one / "checkpoint" / "summary.json").write_text("{}")
    assert find_runs([tmp_path / "runs", one]) == ([one, two], [], [])


def test_no_runs(tmp_path):
    with pytest.raises(ResultsError, match=r"No runs found in .*empty"):
        (tmp_path / "empty").mkdir()
        find_runs([tmp_path / "empty"])
    with pytest.raises(ResultsError, match="is not a folder"):
        find_runs([tmp_path / "nowhere"])


def test_linked_runs_are_runs_and_other_links_are_not_followed(tmp_path, copied_run):
    real, half = copied_run("disk/real"), copied_run("disk/half")
    (half / "summary.json").unlink()
    (runs := tmp_path / "runs").mkdir()
    for name, target in (("a", real), ("b", half), ("loop", runs), ("up", tmp_path), ("no", "no")):
        (runs / name).symlink_to(target)
    assert find_runs([runs]) == ([runs / "a"], [runs / "b"], [])
    mine = copied_run("runs/c")
    assert find_runs([runs]).finished == [runs / "a", mine]
    (runs / "latest").symlink_to("c")
    assert find_runs([runs]).finished == [runs / "a", mine]  # once, by its own name
    assert find_runs([runs / "a"]).finished == [runs / "a"]


def test_an_unfinished_run_is_named(tmp_path, copied_run):
    run = copied_run("a")
    (run / "summary.json").unlink()
    assert find_runs([run]) == ([], [run], [])
    other = copied_run("b")
    assert find_runs([tmp_path]) == ([other], [run], [])
    (interrupted := tmp_path / "c" / "checkpoint").mkdir(parents=True)
    (interrupted / "log.arrows").write_bytes(b"")
    assert find_runs([tmp_path]).unfinished == [run, tmp_path / "c"]

"""Provenance of a run."""

from edgesim.runs.artifacts import git_state


def test_without_git_the_provenance_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state.__wrapped__() == "unknown (git cannot be run)"

"""Traces: files with one value per device, of a limited size."""

import os

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario.per_device_values import MAX_TRACE_VALUES, per_device


def refused(tmp_path):
    from edgesim.scenario.section import ValueRefusedError

    with pytest.raises(ValueRefusedError) as error:
        per_device("Hz").read_in(tmp_path, {"trace": "trace.csv"})
    return str(error.value.problem)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_regular_files_are_read(tmp_path, kind):
    path = tmp_path / "trace.csv"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    expected = "Is a directory" if kind == "folder" else f"it is a {kind}, and only regular files"
    assert f"the file cannot be read ({expected}" in refused(tmp_path)


@pytest.mark.slow
def test_a_file_of_a_million_lines_is_refused_at_once(tmp_path):
    (tmp_path / "trace.csv").write_text("3 GHz\n" * 1_000_000)
    assert f"a trace has at most {MAX_TRACE_VALUES} values" in refused(tmp_path)
    (tmp_path / "trace.csv").write_text("3 GHz\n" * 3_000_000)
    assert "it has 17.17 MiB, more than the 16 MiB allowed" in refused(tmp_path)


def test_a_line_of_a_million_letters_is_refused(tmp_path):
    (tmp_path / "trace.csv").write_text("9" * 1_000_000)
    assert "write one value per line" in refused(tmp_path)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_of_every_system(tmp_path, ending):
    (tmp_path / "trace.csv").write_bytes(ending.join(["# Hz", "3 GHz", "", "1 GHz"]).encode())
    draw = per_device("Hz").read_in(tmp_path, {"trace": "trace.csv"})
    assert draw.values == (3e9, 1e9)


def test_a_scenario_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path):
    from edgesim import load

    os.mkfifo(tmp_path / "s.yaml")
    with pytest.raises(ScenarioError, match="it is a pipe, and only regular files are read"):
        load(tmp_path / "s.yaml")

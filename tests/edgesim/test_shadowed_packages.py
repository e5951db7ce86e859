"""A user's file with the name of one of our packages is one clear sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TIMED

ROOT = Path(__file__).parents[2]


def python(folder, *arguments, path=ROOT):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(path)},
    )


@pytest.mark.parametrize("name", ["fl", "solvers"])
def test_a_file_that_hides_a_package(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("'my notes'")
    (tmp_path / "script.py").write_text("import edgesim")
    for arguments in (["script.py"], ["-m", "edgesim", "--version"]):
        refused = python(tmp_path, *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == (
            f"edgesim has a package {name}, which {tmp_path}/{name}.py hides from Python; "
            "rename that file, or move it to another folder\n"
        )


def test_other_errors_of_a_script_keep_their_traceback(tmp_path):
    (tmp_path / "fl.py").write_text("")
    code = "try:\n    import edgesim\nexcept ImportError:\n    1 / 0"
    refused = python(tmp_path, "-c", code)
    assert refused.returncode == 1 and refused.stderr.startswith("Traceback")
    assert refused.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.slow
def test_only_the_commands_of_reports_miss_a_hidden_reports(tmp_path):
    (tmp_path / "reports.py").write_text("print('ran')")
    assert python(tmp_path, "-c", "import edgesim").returncode == 0
    hidden = python(tmp_path, "-m", "edgesim", "report", "x", path=f"{tmp_path}:{ROOT}")
    assert hidden.returncode == 2 and hidden.stdout == ""
    assert hidden.stderr.endswith("rename that file, or move it to another folder.\n")
    assert hidden.stderr.count("\n") == 1
    plot = python(tmp_path, "-c", "import edgesim; edgesim.plot")
    assert (plot.returncode, plot.stdout, plot.stderr.count("\n")) == (2, "", 1)


@pytest.mark.slow
def test_a_file_beside_the_scenario_hides_no_module_of_python(tmp_path):
    """Neither from the command nor from its workers, of which each is a process of Python."""
    (tmp_path / "select.py").write_text("raise ImportError('this is no select')")
    (tmp_path / "timed.yaml").write_text(TIMED)
    swept = python(tmp_path, "-m", "edgesim", "sweep", "timed.yaml", "rounds=1", "--out", "s")
    assert (swept.returncode, swept.stderr) == (0, ""), swept
    assert "1 of 1 point done" in swept.stdout


@pytest.mark.slow
def test_a_folder_without_code_hides_nothing(tmp_path):
    (tmp_path / "reports").mkdir()
    (tmp_path / "fl").mkdir()
    assert python(tmp_path, "-c", "import edgesim; edgesim.simulate").stderr == ""


def test_the_public_names_are_listed():
    import edgesim

    assert {*edgesim.__all__} <= {*dir(edgesim)}

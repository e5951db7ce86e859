"""A user's file with the name of one of our packages is one clear sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("name", ["fl", "solvers"])
def test_a_file_that_hides_a_package(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("'my notes'")
    (tmp_path / "script.py").write_text("import edgesim")
    last = python(tmp_path, "script.py").stderr.splitlines()[-1]
    assert f"edgesim has a package {name}, which {tmp_path}/{name}.py hides" in last
    assert last.endswith("rename that file, or move it to another folder")


def test_only_the_commands_of_reports_miss_a_hidden_reports(tmp_path):
    (tmp_path / "reports.py").write_text("print('ran')")
    assert python(tmp_path, "-c", "import edgesim").returncode == 0
    hidden = python(tmp_path, "-m", "edgesim", "report", "x")
    assert hidden.returncode == 2 and hidden.stdout == ""
    assert hidden.stderr.endswith("rename that file, or move it to another folder.\n")


@pytest.mark.slow
def test_a_folder_without_code_hides_nothing(tmp_path):
    (tmp_path / "reports").mkdir()
    (tmp_path / "fl").mkdir()
    assert python(tmp_path, "-c", "import edgesim; edgesim.simulate").stderr == ""

"""The package of docs/guide/package.md is installed, listed, tested and run as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "package.md"
FILES = (
    "pyproject.toml",
    "acme_edge/methods.py",
    "acme_edge/allocation.py",
    "acme.yaml",
    "test_acme.py",
)


@pytest.fixture
def package(tmp_path):
    """The folder that the page shows."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:toml|python|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "acme_edge").mkdir()
    (tmp_path / "acme_edge/__init__.py").touch()
    for name, block in zip(FILES, blocks, strict=True):
        assert Path(name).name in text
        (tmp_path / name).write_text(block, encoding="utf-8")
    return tmp_path


def python(folder, *arguments):
    """What a process of its own prints, which finds the package where it was installed."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder / 'site'}:{ROOT}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_package_of_the_page(package):
    if not (find_spec("pip") and find_spec("setuptools")):
        pytest.skip("pip and setuptools are not installed")
    (package / "runs").mkdir()  # that of an earlier run is no part of the package
    offline = ("--no-index", "--no-deps", "--no-build-isolation")
    python(package, "pip", "install", "-q", *offline, "--target", "site", ".")
    assert "a part of their change. (acme-edge 1.2)" in python(
        package, "edgesim", "list", "methods"
    )
    assert "1 passed" in python(package, "pytest", "-q", "-p", "no:cacheprovider", "test_acme.py")
    python(package, "edgesim", "run", "acme.yaml", "rounds=1", "-q", "--out", "run")
    kept = (package / "run/scenario.yaml").read_text()
    assert "part: 0.8" in kept and "acme-edge: '1.2'" in kept

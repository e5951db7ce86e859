"""A small package that registers one thing of every kind: installed, listed, run, and broken."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.extensions import entry_points
from edgesim.scenario import load

pytestmark = pytest.mark.slow  # pip takes seconds
ROOT = Path(__file__).parents[3]
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "acme-edge"
version = "1.2"
[tool.setuptools]
py-modules = ["acme_edge"]
[project.entry-points."edgesim.methods"]
calm = "acme_edge:Calm"
fedavg = "acme_edge:Calm"
gone = "acme_edge:Gone"
wrong = "acme_edge:Wrong"
nowhere = "acme_of_old.parts:Calm"
[project.entry-points."edgesim.solvers"]
halves = "acme_edge:halves"
[project.entry-points."edgesim.models"]
line = "acme_edge:line"
[project.entry-points."edgesim.datasets"]
corners = "acme_edge:corners"
turned = "acme_edge:turned"
[project.entry-points."edgesim.channels"]
flat = "acme_edge:flat"
level = "acme_edge:level"
[project.entry-points."edgesim.selection"]
first = "acme_edge:first"
kept = "acme_edge:kept"
built_in = "builtins:divmod"
"""
CODE = '''\
"""Parts for edgesim."""
from dataclasses import dataclass
import numpy as np
from fl.method_base.method import param
from fl.methods.fedavg import FedAvg

@dataclass(frozen=True, eq=False)
class Calm(FedAvg):
    """FedAvg with another default."""
    calm: float = param(0.5, "does nothing", source="ours", ge=0)

class Wrong(FedAvg):
    """A method that fails."""
    def local_update(self, state, k, w, grant):
        return 1 / 0

def halves(problem):
    """Equal shares, nothing is pruned."""
    return np.full(len(problem.bits), 1 / len(problem.bits)), problem.rho_min

def line(input_shape, classes):
    """One layer."""
    import torch
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, classes))

def corners(turns=0):
    """Which corner of a square is bright."""
    x = np.tile(np.roll(np.eye(4, dtype=np.float32), turns, axis=1), (20, 1))
    y = np.tile(np.arange(4), 20)
    return x, y, x, y

def flat(fleet, streams):
    """100 dB for everybody."""
    return np.full(len(fleet), 100.0)

def first(view, count, stream):
    """The first ones."""
    return view.idle[:count]

from functools import lru_cache, partial

@dataclass
class Level:
    """The same loss for everybody."""
    loss_db: float
    def __call__(self, fleet, streams):
        return np.full(len(fleet), self.loss_db / (self.loss_db > 0))

turned, level, kept = partial(corners, turns=1), Level(90.0), lru_cache(first)
'''
SCENARIO = """\
name: acme
rounds: 2
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: flat}
devices: [{count: 4, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
allocation: {solver: halves}
learning:
  dataset: corners
  partition: {kind: iid}
  model: line
  batch_size: 5
  selection: first
  method: {name: calm, participants: 2, lr: 0.5}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip has installed the package, without a network."""
    for needed in ("pip", "setuptools"):
        if find_spec(needed) is None:
            pytest.skip(f"the package is installed by {needed}, which is not here")
    project, site = tmp_path_factory.mktemp("acme-edge"), tmp_path_factory.mktemp("site")
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "acme_edge.py").write_text(CODE)
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", site, project],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture
def edgesim(site, tmp_path, monkeypatch):
    """The command line in a folder with the scenario, where the package is installed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(site)
    (tmp_path / "acme.yaml").write_text(SCENARIO)

    def run(*arguments, code=0):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == code, done.output
        assert "Traceback" not in done.output
        return done.stdout if code == 0 else done.stderr

    yield run
    sys.modules.pop("acme_edge", None)


def test_a_process_of_its_own_finds_what_is_installed(site, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "edgesim", "list", "solvers"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{site}:{ROOT}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is pruned. (acme-edge 1.2)" in done.stdout


def test_what_is_installed_runs_without_permission(edgesim, tmp_path):
    shown = edgesim("run", "acme.yaml", "--out", "r")
    assert "calm: round 2/2" in shown
    devices = (tmp_path / "r" / "devices.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in devices[1:]] == ["-100.0"] * 4
    kept = (tmp_path / "r" / "scenario.yaml").read_text()
    assert "acme-edge: '1.2'" in kept and "calm: 0.5" in kept
    again = edgesim("run", "r/scenario.yaml", "--out", "again", "-q")
    assert again == "again\n"
    tables = [(tmp_path / name / "rounds.csv").read_bytes() for name in ("r", "again")]
    assert tables[0] == tables[1]


def test_what_is_installed_is_listed_with_its_package(edgesim):
    methods = edgesim("list", "methods").splitlines()
    assert any(
        row.startswith("calm ") and "another default. (acme-edge 1.2)" in row for row in methods
    )
    assert any(row.startswith("gone ") and "cannot be loaded: Attribute" in row for row in methods)
    assert any("not used: a shipped one has this name" in row for row in methods)
    for kind, line in (
        ("solvers", "nothing is pruned. (acme-edge 1.2)"),
        ("models", "One layer. (acme-edge 1.2)"),
        ("datasets", "Which corner of a square is bright. (acme-edge 1.2)"),
        ("channels", "100 dB for everybody. (acme-edge 1.2)"),
        ("selection", "The first ones. (acme-edge 1.2)"),
    ):
        assert line in edgesim("list", kind)


def test_parameters_of_an_installed_method_are_explained(edgesim):
    explained = edgesim("explain", "learning.method.calm")
    assert "does nothing (of calm)" in explained and "0.5" in explained


def test_mistakes_are_one_sentence(edgesim):
    failing = edgesim("run", "acme.yaml", "learning.method={name: wrong}", code=2)
    assert "acme_edge.py:15: ZeroDivisionError" in failing and failing.count("\n") == 1
    broken = edgesim("run", "acme.yaml", "learning.method={name: gone}", code=2)
    assert "is gone, which acme-edge 1.2 cannot load: AttributeError" in broken
    away = edgesim("run", "acme.yaml", "learning.method={name: nowhere}", code=2)
    assert "cannot load: ModuleNotFoundError: No module named 'acme_of_old'" in away
    unknown = edgesim("run", "acme.yaml", "learning.method={name: clam}", code=2)
    assert unknown.count("\n") == 1
    names = "or ./file.py:class, or of installed packages: calm, gone, nowhere, wrong"
    assert f'spafl {names}; did you mean "calm"?' in unknown
    solver = edgesim("run", "acme.yaml", "allocation.solver=havles", code=2)
    assert (
        'or ./file.py:function, or of installed packages: halves; did you mean "halves"?' in solver
    )
    channel = edgesim("run", "acme.yaml", "network.channel=flta", code=2)
    assert "allowed is ./file.py:function, or of installed packages: flat" in channel


def test_what_is_called_need_not_be_a_function(edgesim, tmp_path):
    """A partial, an object with a call of its own, what is wrapped, and what is written in C."""
    odd = ["learning.dataset=turned", "network.channel=level", "learning.selection=kept"]
    edgesim("run", "acme.yaml", *odd[:2], "--out", "r")
    devices = (tmp_path / "r" / "devices.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in devices[1:]] == ["-90.0"] * 4
    unhashable = edgesim("run", "acme.yaml", odd[2], code=2)
    assert "acme_edge.py:1: TypeError: unhashable" in unhashable
    built_in = edgesim("run", "acme.yaml", "learning.selection=built_in", code=2)
    assert "learning.selection is built_in, which failed: " in built_in
    assert "TypeError: divmod expected 2" in built_in


def test_of_two_packages_with_one_name_neither_is_taken(edgesim, monkeypatch, tmp_path):
    other = tmp_path / "other_edge-0.3.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-edge\nVersion: 0.3\n")
    (other / "entry_points.txt").write_text("[edgesim.methods]\ncalm = other_edge:Calm\n")
    monkeypatch.syspath_prepend(tmp_path)
    both = edgesim("run", "acme.yaml", code=2)
    problem = "learning.method.name is calm, which acme-edge 1.2 and other-edge 0.3 register"
    assert both == f"acme.yaml:12: {problem}; remove one of them\n"


def test_nothing_is_looked_for_where_all_names_are_shipped(monkeypatch):
    monkeypatch.setattr(entry_points, "registered", lambda kind: pytest.fail(f"lists {kind}"))
    assert entry_points.entries_named(load(ROOT / "scenarios/demo.yaml", label="joint")) == []

"""Runs with a solver of an installed package whose source changed."""

import sys

import pytest

import edgesim
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED
from edgesim.verification.verify import check_run
from tests.edgesim.verification.conftest import STATIC

ENTRY_POINTS = "[edgesim.solvers]\nthirds = acme_thirds:thirds\n"
SOLVER = """
import os
import numpy as np

def thirds(problem):
    return np.full(len(problem.bits), {share}), problem.rho_min
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Give the package a share; its place is on the path of imports."""
    place = tmp_path / "installed"
    about = place / "acme_thirds-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-thirds\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(place)

    def gives(share):
        (place / "acme_thirds.py").write_text(SOLVER.format(share=share))
        sys.modules.pop("acme_thirds", None)

    yield gives
    sys.modules.pop("acme_thirds", None)


def test_plans_of_other_code_than_the_runs_are_not_judged(package, tmp_path):
    """They were WRONG, though nothing of the run is."""
    (tmp_path / "thirds.yaml").write_text(STATIC.replace("solver: kkt", "solver: thirds"))
    package("1.0 / 3.0")
    changes = ["learning.method={name: fedavg}", "budget.latency_threshold=none"]
    edgesim.simulate(edgesim.load(tmp_path / "thirds.yaml", changes), out=tmp_path / "run")
    *_, planned, finish = check_run(tmp_path / "run", None, False)
    assert (planned.outcome, finish.outcome) == (PASSED, PASSED)
    package("1.0 / 3.125")  # another size: within a second the bytecode would be taken as fresh
    *before, planned, finish = check_run(tmp_path / "run", None, False)
    assert FAILED not in {check.outcome for check in before}
    assert (planned.outcome, finish.outcome) == (SKIPPED, SKIPPED)
    assert "the code of acme-thirds 1.2, another version or the data differ" in planned.detail


def test_a_wrong_plan_of_the_same_package_stays_wrong(package, tmp_path, monkeypatch):
    (tmp_path / "thirds.yaml").write_text(STATIC.replace("solver: kkt", "solver: thirds"))
    package("float(os.environ.get('ACME_SHARE', 0.25))")
    changes = ["learning.method={name: fedavg}", "budget.latency_threshold=none"]
    edgesim.simulate(edgesim.load(tmp_path / "thirds.yaml", changes), out=tmp_path / "run")
    monkeypatch.setenv("ACME_SHARE", "0.3")  # the code is the same, and gives something else
    *_, planned, _ = check_run(tmp_path / "run", None, False)
    assert planned.outcome == FAILED and "share is 0.25" in planned.detail

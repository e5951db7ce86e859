"""What is right in each section, but does not fit together, is refused by the scenario alone."""

import pytest

from edgesim import load
from edgesim.errors import ScenarioError
from edgesim.scenario.loader import expand

PROBLEM = "trains on processors only; write device: cpu, or another executor"


def test_workers_of_a_cluster_train_on_processors_only(path):
    """Training refuses the same, in the same words."""
    for changes in ("learning.executor=dask", "learning.device=cuda:0"):
        load(path, [changes])
    with pytest.raises(ScenarioError, match=f"learning.executor is dask, which {PROBLEM}$"):
        load(path, ["learning.device=cuda:0", "learning.executor=dask"])


def test_a_report_names_schemes_of_its_own_file(path):
    """A label that none has was compared with nothing, without a word."""
    report = "report:\n  beside: liu\n  schemes: {{{}: proposed, b: equal-resource}}\n"
    schemes = "schemes: {a: {}, b: {allocation.solver: equal}}\n"
    text = path.read_text()
    path.write_text(text + schemes + report.format("a"))
    assert len(expand(path)) == 2 and len(expand(path, "~schemes.b")) == 1
    path.write_text(text + schemes + report.format("aa"))
    problem = r"cell.yaml:\d+: report.schemes.aa names no scheme of the file, which has a, b$"
    with pytest.raises(ScenarioError, match=problem):
        load(path, label="b")

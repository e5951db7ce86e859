"""Figures of loaded results."""

import matplotlib
import pytest

import edgesim
from edgesim.errors import ResultsError
from edgesim.results import plotting


def test_the_figures_are_those_of_the_module_that_an_entry_point_names(swept, tiny_scenario):
    matplotlib.use("agg")
    axes = edgesim.load_sweep(swept).plot("latency", x="time")
    assert len(axes.lines) == 2 and "time" in axes.get_xlabel()
    run = edgesim.simulate(edgesim.load(tiny_scenario))
    assert run.plot("latency", ax=axes) is axes and len(axes.lines) == 3


def test_an_unknown_figure_and_a_missing_package_are_one_sentence(swept, monkeypatch):
    with pytest.raises(ResultsError, match=r'"pie" is unknown; there are accuracy, latency, loss'):
        edgesim.load_sweep(swept).plot("pie")
    monkeypatch.setattr(plotting, "plugin_module", lambda name: None)
    with pytest.raises(ResultsError, match="No package for figures is installed"):
        edgesim.load_sweep(swept).plot()


def test_the_metric_of_the_runs_is_a_figure_by_its_name(tiny_scenario):
    matplotlib.use("agg")
    trains = ["learning.dataset=digits", "learning.partition={kind: iid}", "rounds=2"]
    run = edgesim.simulate(
        edgesim.load(tiny_scenario, [*trains, "learning.metric=cross-entropy"]),
        out=tiny_scenario.parent / "measured",
    )
    for given in (run, edgesim.load_run(run.folder)):
        (line,) = given.plot("cross_entropy", x="rounds").lines
        assert line.get_ydata().tolist() == run.rounds["cross_entropy"].tolist()
    with pytest.raises(ResultsError, match="there are accuracy, latency, loss, cross_entropy"):
        run.plot("metric")


def test_a_metric_that_is_called_as_a_figure_has_the_name_that_it_has_in_a_report(tiny_scenario):
    matplotlib.use("agg")
    code = "def latency(outputs, y):\n    return (outputs.argmax(1) == y).float()\n"
    (tiny_scenario.parent / "my.py").write_text(code)
    trains = ["learning.dataset=digits", "learning.partition={kind: iid}", "rounds=2"]
    run = edgesim.simulate(
        edgesim.load(tiny_scenario, [*trains, "learning.metric=./my.py:latency"]), allow_code=True
    )
    (line,) = run.plot("latency_metric", x="rounds").lines
    assert line.get_ydata().tolist() == run.rounds["latency"].tolist()
    assert run.plot("latency").get_ylabel() == "latency per round (ms)"
    with pytest.raises(ResultsError, match="there are accuracy, latency, loss, latency_metric"):
        run.plot("metric")

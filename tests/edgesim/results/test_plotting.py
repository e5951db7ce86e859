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

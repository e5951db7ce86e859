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

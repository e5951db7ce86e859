"""`edgesim.plot`: house style and figures on axes of one's own."""

import gc
import importlib.metadata
import json
import tomllib
from functools import partial
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from pytest import approx

import edgesim
import reports.plot as plot
from edgesim import plugin_modules
from edgesim.errors import ResultsError, ScenarioError

NAN = float("nan")
NASTY_NAME = r"Proposed_1 $\rho$ & 100 % ä"


@pytest.fixture
def ax():
    return Figure().subplots()


def test_edgesim_finds_the_module_by_its_entry_point(monkeypatch):
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    value = project["entry-points"][plugin_modules.GROUP]["plot"]

    def installed(group, name):
        entry = importlib.metadata.EntryPoint("plot", value, group)
        return [entry] if (group, name) == (plugin_modules.GROUP, "plot") else []

    monkeypatch.setattr(plugin_modules, "entry_points", installed)
    assert edgesim.plot is plot
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        _ = edgesim.plots


def test_no_other_package_takes_the_name(monkeypatch, tmp_path):
    for name, value in (("acme", "acme_edge"), ("edgesim", "reports.plot")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[edgesim.modules]\nplot = {value}\n")
    found = importlib.metadata.distributions(path=[str(tmp_path)])
    entries = sorted((each for dist in found for each in dist.entry_points), key=lambda e: e.value)
    assert [entry.value for entry in entries] == ["acme_edge", "reports.plot"]
    monkeypatch.setattr(plugin_modules, "entry_points", lambda group, name: entries)
    assert edgesim.plot is plot


def test_accuracy_has_a_line_per_scheme_under_any_name(two_runs, ax):
    runs = {NASTY_NAME: two_runs / "b", "second": str(two_runs / "a")}
    assert plot.accuracy(runs, ax=ax) is ax
    lines = ax.get_lines()
    assert [line.get_label() for line in lines[:2]] == [NASTY_NAME, "second"]
    # rounds 1 and 3 were evaluated; b takes 30, 50, 40, 40 ms
    assert lines[0].get_xdata().tolist() == approx([0.08, 0.16])
    assert lines[0].get_ydata().tolist() == approx([50.0, 90.0])


def test_a_name_is_drawn_as_it_is_whatever_the_settings(two_runs, ax):
    """An underscore ahead, and half of a formula, with matplotlib's own defaults."""
    names = ["_base", r"cost $\frac{$"]
    plot.accuracy(dict(zip(names, (two_runs / "a", two_runs / "b"), strict=True)), ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [text.strip("\N{ZERO WIDTH SPACE}") for text in texts] == names
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("x", "expected"), [("rounds", [2, 4]), ("bits", [60.0, 120.0]), ("energy", [1.0, 2.0])]
)
def test_the_axis_is_rounds_megabits_or_joules(two_runs, ax, x, expected):
    line = plot.loss(two_runs / "a", ax=ax, x=x).get_lines()[0]
    assert line.get_xdata().tolist() == approx(expected)
    assert line.get_ydata().tolist() == approx([0.5, 0.1])


def test_a_metric_of_the_scenarios_own_is_a_curve(two_runs, write_run, tmp_path, ax):
    """Of those that have it; a run of the same call without it has no line."""
    own = write_run(tmp_path / "own", scheme="own", top3=(NAN, -0.2, NAN, 0.4))
    plot.metric([own, two_runs / "a"], "top3", ax=ax, x="rounds")
    (line,) = ax.get_lines()
    assert line.get_label() == "own" and ax.get_ylabel() == "top3"
    assert line.get_xydata().tolist() == [approx([2, -0.2]), approx([4, 0.4])]
    with pytest.raises(ResultsError) as error:
        plot.metric(own, "top5")
    assert str(error.value) == 'The metric "top5" is unknown; these runs have top3.'


def test_latency_has_the_threshold(two_runs, ax):
    plot.latency(two_runs / "a", ax=ax)
    curve, threshold = ax.get_lines()
    assert curve.get_ydata().tolist() == approx([25.0] * 4)
    assert list(threshold.get_ydata()) == approx([25.0, 25.0])
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["joint", "threshold 25 ms"]


def test_a_second_call_adds_colours_and_room_but_no_second_threshold(two_runs, ax):
    """b takes up to 50 ms, a 25 ms; both have one threshold."""
    plot.latency(two_runs / "a", ax=ax)
    plot.latency(two_runs / "b", ax=ax)
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) > 2]
    assert len({line.get_color() for line in curves}) == len(curves) == 2
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named[:2] == ["joint", "threshold 25 ms"] and len(named) == 3
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 50


def test_many_names_stand_beside_new_axes_in_a_figure_that_has_room(swept_folder):
    """Twelve names of two lines each, as high as the axes, and more than there are colours."""
    for drawn in (plot.accuracy(swept_folder), plot.latency(swept_folder)):
        drawn.figure.draw_without_rendering()
        names, curves = (each.get_window_extent() for each in (drawn.get_legend(), drawn))
        whole = drawn.figure.bbox
        assert names.x0 >= curves.x1 and names.x1 <= whole.x1
        assert names.y0 >= whole.y0 and names.y1 <= whole.y1
        assert curves.width > 4 * drawn.figure.dpi
        lines = [line for line in drawn.lines if not line.get_label().startswith("_")][:12]
        assert len({(line.get_color(), str(line.get_linestyle())) for line in lines}) == 12
        pyplot.close(drawn.figure)


def test_a_second_call_leaves_room_for_higher_accuracies(two_runs, write_run, tmp_path, ax):
    low = write_run(tmp_path / "low", scheme="low", accuracy=(0.1, 0.2, 0.2, 0.3))
    plot.accuracy(low, ax=ax)
    plot.accuracy(two_runs / "a", ax=ax)
    assert ax.get_ylim()[1] > 90


def test_a_run_in_memory_is_plotted_like_its_folder(real_runs, ax, tmp_path):
    scenario = edgesim.load(real_runs.parent / "tiny.yaml", ["network.bandwidth=5 MHz"])
    plot.latency(edgesim.simulate(scenario, seed=0), ax=ax)
    stored = plot.latency(real_runs / "5MHz-s0", ax=Figure().subplots())
    both = (axes.get_lines()[0].get_ydata().tolist() for axes in (ax, stored))
    assert next(both) == next(both)


def test_runs_in_memory_are_drawn_in_the_order_given(real_runs, ax):
    tiny = real_runs.parent / "tiny.yaml"
    runs = [edgesim.simulate(edgesim.load(tiny, [f"scheme={name}"])) for name in ("z", "a")]
    plot.latency(runs, ax=ax)
    assert [line.get_label() for line in ax.get_lines()] == ["z", "a"]


def test_runs_in_memory_of_other_scenarios_are_other_schemes(real_runs, ax):
    """Also with another seed, which alone would make them seeds of one scheme."""
    tiny, kept = real_runs.parent / "tiny.yaml", []
    for rate, seed in ((0.05, 0), (5, 1), (5, 0)):
        scenario = edgesim.load(tiny, [f"learning.method.lr={rate}"])
        kept.append(edgesim.simulate(scenario, seed=seed))
    plot.latency(kept, ax=ax)
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["fedavg (lr 0.05)", "fedavg (lr 5.0)"]
    with pytest.raises(ResultsError, match=r'run 2, .* run 4, .* scheme "fedavg .lr 5'):
        plot.latency([*kept, kept[1]], ax=ax)


def test_a_style_ends_with_its_block_and_gives_every_line_its_looks(two_runs):
    before = dict(matplotlib.rcParams)
    with plot.style("ieee"):
        assert matplotlib.rcParams["font.size"] == 8.0
        lines = plot.accuracy(two_runs, ax=Figure().subplots()).get_lines()
        assert len({line.get_marker() for line in lines[:2]}) == 2
        assert len({line.get_linestyle() for line in lines[:2]}) == 2
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_a_style_without_a_block_holds_for_good(two_runs):
    with matplotlib.rc_context():
        plot.style("ieee")
        gc.collect()
        assert matplotlib.rcParams["font.size"] == 8.0
        assert plot.accuracy(two_runs).figure.get_figwidth() == 3.5


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda runs: plot.style("nature"), 'style "nature" is unknown'),
        (lambda runs: plot.accuracy(runs, x="miles"), 'axis "miles" is unknown'),
        (
            lambda runs: plot.accuracy(runs, ax=Figure().subplots(1, 2)),
            r"ax is ndarray; give one matplotlib axes, such as axes\[0\] of several",
        ),
        (lambda runs: plot.latency(runs, ax="left"), "ax is str; give one"),
        (lambda runs: plot.metric(runs, "top3"), "these runs have no learning.metric"),
        (lambda runs: plot.accuracy({"one": runs}), r'name "one" is given to several'),
        (lambda runs: plot.accuracy(3), "int is no run"),
        (lambda runs: plot.accuracy([]), "No runs are given; give a folder"),
        (lambda runs: plot.latency({"one": []}), 'No runs are given for "one"; give a folder'),
        (lambda runs: plot.figure({}, "accuracy"), "No runs are given; give a folder"),
        (lambda runs: plot.report([]), "No runs are given; give a folder"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(two_runs, call, sentence):
    with pytest.raises(ResultsError, match=sentence):
        call(two_runs)


def test_accuracies_that_no_run_has_are_no_empty_axes(write_run, tmp_path, ax):
    run = write_run(tmp_path / "one", accuracy=(NAN,) * 4)
    with pytest.raises(ResultsError, match="These runs have no test accuracy, so that there is"):
        plot.accuracy(run, ax=ax)


def test_numbers_that_are_all_infinite_are_no_empty_axes(write_run, tmp_path, ax):
    """Such as the losses of training that diverged."""
    infinite = (float("inf"),) * 4
    run = write_run(tmp_path / "one", loss=infinite, top3=infinite)
    for draw, what in ((plot.loss, "test loss"), (partial(plot.metric, name="top3"), "top3")):
        with pytest.raises(ResultsError, match=f"These runs have no finite {what}, so that there"):
            draw(run, ax=ax)


def test_a_figure_of_the_report_has_its_own_style_under_any_settings(two_runs):
    def dashes():
        (panel, *_) = plot.figure(two_runs, "latency", {"style": "ieee"}).axes
        return [(line.get_linestyle(), line.get_marker()) for line in panel.lines]

    expected = dashes()
    with plot.style("ieee"):
        assert dashes() == expected


@pytest.mark.slow
def test_a_figure_of_the_report_takes_its_options(swept_folder):
    options = {
        "style": "ieee",
        "columns": 2,
        "panels": "lettered",
        "slice": {"bandwidth": "10 MHz"},
    }
    drawn = plot.figure(swept_folder, "accuracy", options)
    assert drawn.get_figwidth() == 7.16
    assert [axes.get_title(loc="left")[:3] for axes in drawn.axes] == ["(a)", "(b)"]
    with pytest.raises(ScenarioError, match='figures is "pareta"; did you mean pareto'):
        plot.figure(swept_folder, "pareta")


@pytest.mark.slow
def test_a_report_from_python(two_runs, tmp_path):
    page = plot.report(two_runs, {"figures": "cdf"}, tmp_path / "out")
    assert page == tmp_path / "out" / "index.html"
    assert {path.stem for path in (tmp_path / "out" / "figures").iterdir()} == {"cdf"}


@pytest.mark.parametrize("given", [3, [3]])
def test_a_report_of_what_is_no_folder_is_refused(given):
    """It was a TypeError, as for a run, which every other function of the module takes."""
    with pytest.raises(ResultsError, match=r"^int is no folder; give that of a run,"):
        plot.report(given)


@pytest.mark.parametrize("options", [["style=ieee"], "style=ieee"])
def test_options_that_are_no_mapping_are_refused(run, options):
    sentence = r"^options: (list|str) is no mapping; write one, such as {\"style\": \"ieee\"}$"
    with pytest.raises(ScenarioError, match=sentence):
        plot.report(run, options)
    with pytest.raises(ScenarioError, match=sentence):
        plot.figure(run, "cdf", options)


def test_loaded_results_are_drawn_without_the_runs_beside_them(tmp_path, write_sweep, write_run):
    """A sweep was repeated without seed 1, whose run is still there: no part of its results."""
    sweep = write_sweep(thresholds=("15 ms",), bands=("10 MHz",))
    content = json.loads((sweep / "sweep.json").read_text())
    content["points"] = [point for point in content["points"] if point["seed"] == 0]
    (sweep / "sweep.json").write_text(json.dumps(content))
    results = edgesim.load_sweep(sweep)
    assert results.points["seed"].tolist() == [0, 0]
    ends = [line.get_ydata()[-1] for line in results.plot().lines]
    assert ends == approx([20.0, 10.0])  # liu and fedavg, of seed 0 alone
    other = write_run(tmp_path / "other", scheme="other", accuracy=(0.6,) * 4)

    def ends_of(*runs):
        lines = plot.accuracy([results, *runs], Figure().subplots()).get_legend_handles_labels()[0]
        return sorted(line.get_ydata()[-1] for line in lines)

    assert ends_of(str(other)) == approx([10.0, 20.0, 60.0])  # they were means with seed 1 there
    assert ends_of(sweep) == approx([10.5, 20.5])

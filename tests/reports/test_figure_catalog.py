"""The list of figures."""

import itertools
import re
import shutil

import pytest
from pytest import approx

import reports.plot as plot
from edgesim.errors import ResultsError, ScenarioError
from edgesim.results.run_search import find_runs
from reports.figure_catalog import report_figures
from reports.html_page import write_report
from reports.interactive.chart_data import chart_data
from reports.report_options import options_from
from reports.run_data.scheme_grouping import load_schemes, swept_keys
from reports.styling.figure_style import SCREEN
from reports.text.sweep_tables import sweep_pivots

NAN = float("nan")


@pytest.mark.slow
def test_two_keys_that_end_alike_give_two_sets_of_figures(tmp_path, write_run):
    """They had one name: the figures of the second lay on those of the first."""
    for fast, slow in itertools.product((1, 2), (3, 4)):
        groups = (
            f"devices: [{{cpu: {{frequency: {fast} GHz}}}}, {{cpu: {{frequency: {slow} GHz}}}}]"
        )
        write_run(tmp_path / "runs" / f"{fast}{slow}", extra=groups)
    found = load_schemes(find_runs([tmp_path / "runs"]).finished)
    assert found[1].label == "joint (devices 0 cpu frequency 1 GHz, devices 1 cpu frequency 4 GHz)"
    names = [plate.name for plate in report_figures(found)[0]]
    assert len(set(names)) == len(names)
    assert {"rho-by-devices-0-cpu-frequency", "rho-by-devices-1-cpu-frequency"} <= set(names)


@pytest.mark.slow
def test_other_axes_are_held_where_there_are_lines(write_sweep):
    """The middle one of five thresholds, 20 ms, has one band: no line, and yet there are some."""
    sweep = write_sweep(thresholds=[f"{t} ms" for t in (10, 15, 20, 25, 30)], seeds=(0,))
    for path in sweep.glob("points/*-20ms-[24]0MHz-0"):
        shutil.rmtree(path)
    figures, notes = report_figures(load_schemes(find_runs([sweep]).finished))
    figure = next(figure for figure in figures if figure.name == "latency-by-bandwidth")
    assert figure.caption.endswith("Shown: latency threshold 15 ms; the data has all.")
    assert notes == []


def changed_together(tmp_path, write_run, linked=()):
    """Two runs that differ in rounds between evaluations and in the band: the README's tour."""
    for every, band in ((1, "3.2 MHz"), (2, "6 MHz")):
        write_run(
            tmp_path / "runs" / str(every), bandwidth=band, extra=f"evaluate: {{every: {every}}}"
        )
    return load_schemes(find_runs([tmp_path / "runs"]).finished, linked=linked)


def test_no_axis_from_runs_that_differ_in_another_key_too(tmp_path, write_run):
    schemes = changed_together(tmp_path, write_run)
    figures, notes = report_figures(schemes)
    assert not any("-by-" in figure.name for figure in figures)
    assert len(notes) == 2 and "No figure against evaluate.every" in notes[1]
    assert "They differ in network.bandwidth too" in notes[1]
    assert schemes[0].label == "joint (bandwidth 3.2 MHz, every 1)"


def test_asked_for_the_axis_names_the_keys_that_change_along(tmp_path, write_run):
    schemes = changed_together(tmp_path, write_run)
    figures, _ = report_figures(schemes, options_from({"along": "evaluate.every"}))
    latency = next(figure for figure in figures if figure.name == "latency-by-every")
    (panel,) = latency.draw(SCREEN).axes
    assert panel.get_xlabel() == "every, with bandwidth"
    assert panel.lines[0].get_xdata().tolist() == [1, 2]


@pytest.mark.parametrize("words", [(), ("learning.dataset",)])
def test_keys_that_a_sweep_links_are_one_axis(tmp_path, write_run, words):
    linked = [(*words, "network.bandwidth", "evaluate.every")]
    figures, notes = report_figures(changed_together(tmp_path, write_run, linked))
    names = {figure.name for figure in figures if "-by-" in figure.name}
    assert "latency-by-bandwidth" in names and not any("every" in name for name in names)
    latency = next(figure for figure in figures if figure.name == "latency-by-bandwidth")
    (panel,) = latency.draw(SCREEN).axes
    assert panel.get_xlabel() == "bandwidth (MHz), with every"
    assert panel.lines[0].get_xdata().tolist() == [3.2, 6]
    assert notes == []


def test_a_key_that_was_changed_with_both_bands_is_named_too(tmp_path, write_run):
    for i, band in enumerate(("2 MHz", "4 MHz", "8 MHz")):
        both = f"{band}, downlink: {{mode: broadcast, bandwidth: {band}}}"
        limit = f"budget: {{latency_threshold: {10 * (i + 1)} ms}}"
        write_run(tmp_path / str(i), bandwidth=both, extra=limit)
    folders = sorted(tmp_path.iterdir())
    linked = [("network.bandwidth", "budget.latency_threshold")]
    (axis,) = swept_keys(load_schemes(folders, linked=linked))
    assert axis.tied == ("latency threshold", "downlink bandwidth")


def test_the_band_is_an_axis_also_where_that_of_the_downlink_is_the_same(tmp_path, write_run):
    """A downlink that is sent has the band of the cell, unless it is given one."""
    for band in ("2 MHz", "4 MHz"):
        both = f"{band}, downlink: {{mode: broadcast, bandwidth: {band}}}"
        write_run(tmp_path / "runs" / band[0], bandwidth=both)
    figures, notes = report_figures(load_schemes(find_runs([tmp_path / "runs"]).finished))
    latency = next(each for each in figures if each.name == "latency-by-network-bandwidth")
    (panel,) = latency.draw(SCREEN).axes
    assert panel.get_xlabel() == "network bandwidth (MHz), with downlink bandwidth"
    assert panel.lines[0].get_xdata().tolist() == [2, 4]
    assert notes == []


@pytest.mark.slow
def test_linked_keys_stay_apart_where_other_runs_break_the_link(tmp_path, write_run):
    """The same band with another second value: the first key no longer says the second."""
    write_run(tmp_path / "runs" / "more", bandwidth="6 MHz", extra="evaluate: {every: 3}")
    linked = [("network.bandwidth", "evaluate.every")]
    figures, _ = report_figures(changed_together(tmp_path, write_run, linked))
    latency = next(figure for figure in figures if figure.name == "latency-by-every")
    (panel,) = latency.draw(SCREEN).axes
    assert panel.get_xlabel() == "every"
    assert [2, 3] in [line.get_xdata().tolist() for line in panel.lines]


@pytest.fixture(scope="module")
def without_targets(tmp_path_factory, write_run):
    """Folder of a run without targets, and the names of the figures that can be drawn of it."""
    folder = write_run(tmp_path_factory.mktemp("runs") / "a", targets=())
    return folder, [each.name for each in report_figures(load_schemes([folder]))[0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("staleness", '"staleness"'),  # a clock whose jobs overlap has it
        ("cdf,to-target,worth", '"to-target", "worth"'),
    ],
)
def test_a_figure_that_the_results_do_not_have_is_refused(without_targets, tmp_path, asked, named):
    (folder, drawn), out, begun = without_targets, tmp_path / "out", []
    options = options_from({"figures": asked})
    with pytest.raises(ResultsError) as error:
        write_report([folder], out, options, lambda *each: begun.append(each))
    assert begun == []  # that takes long
    said, there = str(error.value).split("; there are ")
    assert said == f"The report's figures names {named}, which these results do not have"
    assert not out.exists() and "staleness" not in there and "to-target" not in there
    assert there == f"{', '.join(drawn)}." and "cdf" in drawn


@pytest.mark.slow
def test_a_figure_alone_that_the_results_do_not_have_is_refused(without_targets):
    folder, _ = without_targets
    with pytest.raises(ResultsError, match='names "worth", which these results do not have'):
        plot.figure(folder, "worth")
    with pytest.raises(ScenarioError, match='figures is "curves"; allowed is'):  # no report has it
        plot.figure(folder, "curves")


def test_a_title_that_asks_is_a_sentence_as_it_is(tmp_path, write_run):
    schemes = load_schemes([write_run(tmp_path / "run", pruning_per_hz=-4e-8, pruning_per_s=-40.0)])
    sentences = {figure.name: figure.sentence for figure in report_figures(schemes)[0]}
    assert sentences["worth"] == "What would more band or time buy?"
    assert sentences["costs"] == "Payload and energy."


def seeds_of(tmp_path, write_run, finals, targets=("0.8",)):
    """A scheme with a run per final accuracy."""
    given = {"latency_s": (0.01, 0.02), "targets": targets}
    return load_schemes(
        [
            write_run(tmp_path / str(seed), seed=seed, accuracy=(0.1, final), **given)
            for seed, final in enumerate(finals)
        ]
    )


@pytest.mark.parametrize(
    ("finals", "pareto", "target"),
    [
        ((0.9, 0.9), "dots: the values of two seeds", "dots: the values of two seeds"),
        (
            (0.9, 0.9, 0.9),
            "bars: 95 % interval (Student t) over 3 seeds",
            "bars: 95 % interval (Student t) over 3 seeds",
        ),
        # two of three seeds reach the target, and are dots
        (
            (0.9, 0.9, 0.5),
            "bars: 95 % interval (Student t) over 3 seeds",
            "dots: the values of two seeds",
        ),
        ((0.9,), "", ""),
    ],
)
def test_captions_say_what_bars_and_dots_are(tmp_path, write_run, finals, pareto, target):
    schemes = seeds_of(tmp_path, write_run, finals)
    captions = {figure.name: figure.caption for figure in report_figures(schemes)[0]}
    assert f"the best accuracy for a price{pareto and ', '}{pareto}." in captions["pareto"]
    said = f"over the seeds that did{target and ', '}{target}; where not all did"
    assert said in captions["to-target"]


@pytest.mark.slow
def test_a_metric_has_its_name_unless_another_figure_has_it(tmp_path, write_run):
    runs = [
        write_run(tmp_path / name, scheme=name, **{name: (NAN, 0.2, NAN, 0.4)})
        for name in ("top3", "latency")
    ]
    figures = {figure.name: figure for figure in report_figures(load_schemes(runs))[0]}
    assert figures["top3"].sentence == "Metric top3 over simulated time and over rounds."
    assert [row[5] for row in figures["top3"].table().rows] == [0.2, 0.4]  # one scheme has it
    assert [row[5] for row in figures["latency_metric"].table().rows] == [0.2, 0.4]
    assert figures["latency"].table().columns[5].title == "Latency (s)"
    for name in ("top3", "latency_metric"):
        assert plot.figure(runs, name).axes[0].get_ylabel() == name.removesuffix("_metric")
    with pytest.raises(ScenarioError, match='figures is "top_3"; did you mean top3'):
        plot.figure(runs, "top_3")


@pytest.mark.slow
def test_a_metric_of_a_sweep_stands_against_its_keys(tmp_path, write_run):
    """Last values 0.2 and 0.4 at 10 and 20 MHz; joules per round keep their name beside a metric's.

    One without it has no point.
    """
    runs = [
        write_run(
            tmp_path / f"{band}-{seed}", bandwidth=f"{band} MHz", seed=seed,
            **{} if band == 40 else {"energy": (NAN, band / 50, NAN, band / 50)},
        )
        for band in (10, 20, 40)
        for seed in range(3)
    ]  # fmt: skip
    schemes = load_schemes(runs)
    figures = {figure.name: figure for figure in report_figures(schemes)[0]}
    own = figures["energy_metric-by-bandwidth"]
    assert own.sentence == "Final energy against bandwidth."
    assert [row[2] for row in own.table().rows][:2] == approx([0.2, 0.4])
    assert figures["energy-by-bandwidth"].table().rows[0][2] == 0.5
    (panel,) = plot.figure(runs, "energy_metric-by-bandwidth").axes
    assert panel.lines[0].get_xydata().tolist() == [approx([10, 0.2]), approx([20, 0.4])]
    assert panel.get_ylabel() == "final energy"
    with pytest.raises(ScenarioError, match='figures is "energi"; did you mean energy'):
        plot.figure(runs, "energi-by-bandwidth")
    (pivot,) = (t for t in sweep_pivots(schemes, swept_keys(schemes)) if "_metric" in t.name)
    assert pivot.name == "energy_metric-by-bandwidth" and not pivot.best()
    assert pivot.rows[0][1::2] == approx((0.2, 0.4, NAN), nan_ok=True)
    data = chart_data(schemes, swept_keys(schemes))["sweep"]
    assert (data["metrics"][-1], data["points"][1]["values"][-1][0]) == ("final energy", 0.4)


@pytest.mark.slow
def test_captions_name_the_threshold_where_it_has_a_line(scheme_of, overlapping):
    overlapping.first.summary["latency_threshold_s"] = 0.75  # of a job
    for scheme, dashed in (
        (scheme_of(scheme="with"), True),
        (scheme_of(scheme="without", threshold_s=None), False),
        (overlapping, False),
    ):
        figures = {figure.name: figure for figure in report_figures([scheme])[0]}
        for name in ("latency", "cdf"):
            assert ("; dashed: the latency threshold." in figures[name].caption) == dashed


def test_captions_say_which_of_many_schemes_are_shown_and_whether_the_data_has_all(scheme_of):
    schemes = [scheme_of(scheme=f"s{i}") for i in range(9)]
    found = {each.name: each for each in report_figures(schemes)[0]}
    assert found["cdf"].caption.endswith("Shown: the first 8 of 9 schemes; the data has all.")
    assert {row[0] for row in found["cdf"].table().rows} == {f"s{i}" for i in range(9)}
    # spans of a round are many
    assert "Shown: the first 8 of 9 schemes." in found["timeline"].caption
    assert {row[0] for row in found["timeline"].table().rows} == {f"s{i}" for i in range(8)}


def test_the_numbers_under_every_figure_are_rounded(scheme_of):
    scheme = scheme_of(latency_s=(0.1 / 3, 0.2 / 3, 0.7 / 3), energy_j=1 / 3, accuracy=(1 / 3,) * 3)
    scheme.first.device_rounds["sinr_db"] = 10 / 3
    figures, _ = report_figures([scheme])
    assert {"cdf", "decomposition", "sinr"} <= {each.name for each in figures}
    for each in figures:
        raw = [text for row in each.table().cells() for text in row if re.search(r"\.\d{9}", text)]
        assert not raw, each.name

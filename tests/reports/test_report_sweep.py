"""A sweep: labels and series, curves and maps over its keys, and what is missing of it."""

import itertools
import json
import math

import numpy as np
import pytest
from pytest import approx

from reports import html_page as page
from reports.figure_catalog import report_figures
from reports.figures import device_allocation, sweep_maps
from reports.figures import sweep_curves as swept
from reports.html_page import write_report
from reports.run_data.metrics import ACCURACY, LATENCY
from reports.run_data.missing_runs import (
    listed_folders,
    missing_runs,
    superseded_runs,
    sweep_points,
)
from reports.run_data.run_files import ReportError
from reports.run_data.run_search import find_runs
from reports.run_data.scheme_grouping import MOST_SERIES, few_schemes, load_schemes, swept_keys
from reports.styling import figure_style as style
from reports.text import liu_comparison


@pytest.fixture
def schemes(swept_folder):
    return load_schemes(find_runs([swept_folder]).finished)


def test_labels_series_and_axes(schemes):
    assert len(schemes) == 12 and {len(scheme.runs) for scheme in schemes} == {2}
    assert schemes[0].label == "liu (bandwidth 10 MHz, latency threshold 15 ms)"
    assert {scheme.series for scheme in schemes} == {"liu", "fedavg"}
    assert [axis.title for axis in swept_keys(schemes)] == [
        "bandwidth (MHz)",
        "latency threshold (ms)",
    ]


def test_schemes_come_in_the_order_of_their_numbers(write_sweep):
    folders = find_runs(
        [write_sweep(bands=("100 MHz", "20 MHz", "3 MHz"), thresholds=("15 ms",))]
    ).finished
    numbers = [scheme.numbers["network.bandwidth"] for scheme in load_schemes(folders)]
    assert numbers == ["3 MHz", "20 MHz", "100 MHz"] * 2


def test_numbers_are_ordered_whatever_their_units(write_sweep):
    folders = find_runs(
        [write_sweep(bands=("1 GHz", "500 MHz"), thresholds=("1 s", "15 ms"), seeds=(0,))]
    ).finished
    found = [
        tuple(scheme.numbers.values()) for scheme in load_schemes(folders) if scheme.series == "liu"
    ]
    assert found == [("500 MHz", "15 ms"), ("500 MHz", "1 s"), ("1 GHz", "15 ms"), ("1 GHz", "1 s")]


def test_two_keys_that_end_alike_give_two_sets_of_figures(tmp_path, write_run):
    """They had one name: the figures of the second lay on those of the first."""
    for fast, slow in itertools.product((1, 2), (3, 4)):
        groups = (
            f"devices: [{{cpu: {{frequency: {fast} GHz}}}}, {{cpu: {{frequency: {slow} GHz}}}}]"
        )
        write_run(tmp_path / "runs" / f"{fast}{slow}", extra=groups)
    found = load_schemes(find_runs([tmp_path / "runs"]).finished)
    assert found[1].label == "joint (devices 0 cpu frequency 1 GHz, devices 1 cpu frequency 4 GHz)"
    names = [plate.name for plate in report_figures(found)]
    assert len(set(names)) == len(names)
    assert {"rho-by-devices-0-cpu-frequency", "rho-by-devices-1-cpu-frequency"} <= set(names)


def test_a_slice_is_the_middle_of_every_axis(schemes):
    shown, chosen = few_schemes(schemes, swept_keys(schemes))
    assert chosen == "bandwidth 20 MHz, latency threshold 15 ms"
    assert [scheme.label for scheme in shown] == ["liu", "fedavg"]
    assert shown[0].numbers == {"network.bandwidth": "20 MHz", "budget.latency_threshold": "15 ms"}
    assert few_schemes(schemes[:MOST_SERIES], swept_keys(schemes)) == (schemes[:MOST_SERIES], "")


def test_lines_are_means_with_the_interval_of_the_t_table(schemes):
    band, threshold = swept_keys(schemes)
    lines, fixed = swept.sweep_lines(schemes, [band, threshold], band, ACCURACY)
    assert fixed == "" and [line.label for line in lines][:2] == [
        "liu, latency threshold 15 ms",
        "liu, latency threshold 30 ms",
    ]
    assert lines[0].x == [10, 20, 40]
    assert [y.mean for y in lines[0].y] == approx([0.205, 0.305, 0.505])
    assert lines[0].y[0].half == approx(
        12.7062 * 0.005, rel=1e-5
    )  # t of 1 degree; s / sqrt(2) = 0.005
    assert {y.n for line in lines for y in line.y} == {2}


def test_too_many_lines_leave_the_middle_of_the_other_key(write_sweep):
    sweep = write_sweep(thresholds=tuple(f"{t} ms" for t in (10, 15, 20, 25, 30)), seeds=(0,))
    schemes = load_schemes(find_runs([sweep]).finished)
    band, threshold = swept_keys(schemes)
    lines, fixed = swept.sweep_lines(schemes, [band, threshold], band, LATENCY)
    assert fixed == "latency threshold 20 ms" and [line.label for line in lines] == [
        "liu",
        "fedavg",
    ]
    assert [y.mean for y in lines[1].y] == approx([0.2] * 3)
    assert all(math.isnan(y.half) for y in lines[0].y)


def test_of_three_keys_only_as_many_are_fixed_as_needed(tmp_path, write_run):
    """3 x 3 lines are too many: the first other key goes to its middle value, the second one keeps its lines."""
    for i, (noise, threshold, band) in enumerate(
        itertools.product((1, 2, 3), (10, 20, 30), (5, 6))
    ):
        extra = f"budget: {{latency_threshold: {threshold} ms}}\nevaluate: {{every: {noise}}}"
        latency_s = (noise + threshold / 100 + band / 1000,) * 2
        folder = tmp_path / "runs" / str(i)
        write_run(
            folder, bandwidth=f"{band} MHz", extra=extra, latency_s=latency_s, accuracy=(0.1, 0.2)
        )
    schemes = load_schemes(find_runs([tmp_path / "runs"]).finished)
    band, threshold, every = swept_keys(schemes)
    lines, chosen = swept.sweep_lines(schemes, [band, threshold, every], band, LATENCY)
    assert chosen == "latency threshold 20 ms"
    assert [line.label for line in lines] == [f"joint, every {n}" for n in (1, 2, 3)]
    assert [y.mean for y in lines[1].y] == approx([2.205, 2.206])


def test_what_is_drawn_against_the_threshold(schemes):
    band, threshold = swept_keys(schemes)
    with style.styled(style.IEEE):
        figure = swept.sweep_curves(schemes, [band, threshold], threshold, LATENCY, style.IEEE)
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == (
        "latency threshold (ms)",
        "mean latency per round (ms)",
    )
    drawn = [line for line in panel.lines if line.get_marker() not in ("None", "", "_", "|")]
    assert drawn[0].get_xydata().tolist() == [approx([15, 15]), approx([30, 30])]
    assert drawn[-1].get_xydata().tolist() == [approx([15, 150]), approx([30, 300])]
    looks = {(line.get_marker(), str(line._unscaled_dash_pattern)) for line in drawn}
    assert len(looks) == len(drawn) == 6  # in grey, every line has its own dashes and marker
    assert figure.get_figwidth() == 3.5


@pytest.mark.parametrize("look", [style.SCREEN, style.IEEE])
def test_marks_without_a_line_have_each_their_own_marker(write_sweep, look):
    found = load_schemes(find_runs([write_sweep(thresholds=("15 ms",), seeds=(0,))]).finished)
    with style.styled(look):
        panel = device_allocation.device_allocation(found, look).axes[0]
    markers = [bars.lines[0].get_marker() for bars in panel.containers]
    assert len(markers) == 6 == len(set(markers))


def test_a_long_list_of_references_is_cut(write_sweep):
    bands = tuple(f"{i} MHz" for i in range(1, 13))
    note = liu_comparison.reference_note(
        load_schemes(find_runs([write_sweep(("15 ms",), bands, (0,))]).finished)
    )
    assert "; 5 others; fedavg (bandwidth 12 MHz) 150.0" in note and note.count("per round") == 7


def test_heat_map_cells_are_means_over_seeds_and_blank_without_runs(schemes):
    axes = swept_keys(schemes)
    kept = [s for s in schemes if s.label != "fedavg (bandwidth 40 MHz, latency threshold 30 ms)"]
    (liu, grid, x, y), (fedavg, other, _, _) = sweep_maps.sweep_maps(kept, axes, ACCURACY)
    assert (liu, fedavg, x, y) == ("liu", "fedavg", [10, 20, 40], [15, 30])
    assert grid == approx(np.array([[0.205, 0.305, 0.505]] * 2))
    assert other == approx(np.array([[0.105, 0.205, 0.405], [0.105, 0.205, math.nan]]), nan_ok=True)


def test_one_axis_has_no_map(write_sweep):
    schemes = load_schemes(find_runs([write_sweep(thresholds=("15 ms",))]).finished)
    assert sweep_maps.sweep_maps(schemes, swept_keys(schemes), ACCURACY) == []


def test_the_data_of_a_figure_has_the_keys_the_interval_and_n(schemes):
    table = swept.sweep_table(schemes, swept_keys(schemes), ACCURACY)
    assert table.csv().splitlines()[:2] == [
        "scheme,network.bandwidth,budget.latency_threshold,accuracy,accuracy_ci95,seeds",
        f"liu,10.0,15.0,{table.rows[0][3]!r},{table.rows[0][4]!r},2",
    ]
    assert table.rows[0][3] == approx(0.205)


def test_only_schemes_at_the_same_values_are_held_against_each_other(tmp_path, write_run):
    folders = [
        write_run(
            tmp_path / f"{solver}-{band}", scheme=solver, solver=solver, bandwidth=f"{band} MHz"
        )
        for solver in ("kkt", "equal")
        for band in (10, 20)
    ]
    claims = liu_comparison.compare_with_liu(load_schemes(folders))
    assert [claim.text.count("20 MHz") for claim in claims if "equally long" in claim.text] == [
        0,
        2,
    ]


def test_missing_points_are_said_with_their_reason(write_sweep, tmp_path):
    sweep = write_sweep(seeds=(0,))
    listed = json.loads((sweep / "sweep.json").read_text())
    first, second, third = listed["points"][:3]
    first |= {"status": "failed", "error": "MemoryError: no room"}
    for point in (first, second, third):
        (sweep / point["folder"] / "summary.json").unlink()
    for file in (sweep / third["folder"]).iterdir():
        file.unlink()
    third["status"] = "infeasible"
    (sweep / "sweep.json").write_text(json.dumps(listed))
    found = missing_runs(find_runs([sweep]))
    assert [(one.status, one.error) for one in found] == [
        ("failed", "MemoryError: no room"), ("unfinished", ""), ("infeasible", ""),
    ]  # fmt: skip
    assert (
        found[1].what == "liu: budget.latency_threshold=15ms, network.bandwidth=20 MHz"
        and found[1].seed == "0"
    )


def test_a_finished_run_is_not_missing_whatever_the_file_says(write_sweep):
    sweep = write_sweep(seeds=(0,))
    text = (sweep / "sweep.json").read_text().replace('"done"', '"missing"')
    (sweep / "sweep.json").write_text(text)
    assert missing_runs(find_runs([sweep])) == []


def test_points_of_an_earlier_sweep_are_reported_unless_a_listed_one_is_the_same(
    write_sweep, write_run, tmp_path, monkeypatch
):
    sweep = write_sweep(seeds=(0,), thresholds=("15 ms",), bands=("10 MHz",))
    extra = "budget: {latency_threshold: 15 ms}"
    same = {
        "scheme": "liu",
        "method": "liu",
        "targets": ("0.2",),
        "extra": extra,
        "accuracy": (0.1,) * 4,
    }
    write_run(sweep / "points" / "old", bandwidth="10 MHz", **same)
    write_run(sweep / "points" / "other", bandwidth="7 MHz", **same)
    with pytest.raises(ReportError, match="same seed 0"):
        load_schemes(find_runs([sweep / "points"]).finished)
    found = find_runs([sweep])
    schemes = load_schemes(found.finished, listed_folders(found))
    reported = [run.folder for scheme in schemes for run in scheme.runs]
    assert {folder.name for folder in reported} == {
        "liu-15ms-10MHz-0",
        "fedavg-15ms-10MHz-0",
        "other",
    }
    assert [(one.what, one.status) for one in superseded_runs(found, reported)] == [
        ("old", "superseded")
    ]
    monkeypatch.setattr(page, "report_figures", lambda schemes: [])
    html = write_report([sweep], tmp_path / "out").read_text(encoding="utf-8")
    assert "<td>superseded</td>" in html and "Not complete" not in html  # nothing is lacking for it


def test_a_sweep_without_a_finished_point(write_sweep, tmp_path):
    sweep = write_sweep(seeds=(0,), thresholds=("15 ms",), bands=("10 MHz",))
    for summary in sweep.rglob("summary.json"):
        summary.unlink()
    with pytest.raises(ReportError, match=r"No finished run in .*sweep \(2 unfinished\)"):
        write_report([sweep], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"points": [{}]}', '{"points": 3}'])
def test_a_broken_sweep_json_is_one_sentence(write_sweep, text):
    sweep = write_sweep(seeds=(0,), thresholds=("15 ms",), bands=("10 MHz",))
    (sweep / "sweep.json").write_text(text)
    with pytest.raises(ReportError, match=r"sweep\.json") as error:
        sweep_points(sweep)
    assert "\n" not in str(error.value)

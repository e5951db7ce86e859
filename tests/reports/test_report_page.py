"""The page and its figures: what is drawn is what was logged; the same runs give the same bytes."""

import base64
import re

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pytest import approx

from reports import html_page as page
from reports.figures import device_allocation, label_partition, payload_and_energy, round_latency
from reports.figures import learning_curves as curves
from reports.figures import round_timeline as timeline
from reports.html_page import write_report
from reports.run_data.run_files import ReportError
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import colours_and_markers as colours
from reports.styling import figure_style as style
from reports.styling import labelled_bars

FIGURES = (
    "accuracy",
    "spending",
    "loss",
    "latency",
    "cdf",
    "decomposition",
    "timeline",
    "pareto",
    "to-target",
    "costs",
)
FIGURES += ("devices", "topology", "partition")


@pytest.fixture
def only(monkeypatch):
    """only("cdf", ...): reports with these figures, to be quick."""
    every = page.report_figures

    def keep(*names):
        monkeypatch.setattr(
            page, "report_figures", lambda schemes: [p for p in every(schemes) if p.name in names]
        )

    return keep


def test_every_figure_in_every_format_with_its_data(report):
    for name in FIGURES:
        for kind in ("pdf", "png", "svg"):
            assert (report / "figures" / f"{name}.{kind}").stat().st_size > 1000
        assert len((report / "figures" / f"{name}.csv").read_text().splitlines()) > 1
    assert {path.stem for path in (report / "figures").iterdir()} == set(FIGURES)
    tables = {path.name for path in (report / "tables").iterdir()}
    names = ("schemes", "costs", "targets", "devices", "differences")
    assert tables == {f"{name}.{kind}" for name in names for kind in ("csv", "md", "tex")}


def test_the_page_escapes_and_needs_nothing_from_outside(report, two_runs):
    html = (report / "index.html").read_text(encoding="utf-8")
    assert "<script" not in html and "&lt;script&gt;alert(1)" in html
    assert "<b>fades" not in html and "device 1 &lt;b&gt;fades&lt;/b&gt;" in html
    assert (
        not re.search(r"""(src|href)=["'](https?:)?//""", html)
        and "@import" not in html
        and "url(" not in html
    )
    assert html.count("data:image/svg+xml;base64,") == len(FIGURES)
    assert str(two_runs.parent) not in html
    assert (
        "joint: every round takes 25.0\u00a0ms" in html
        and "not reached" in html
        and "200 MHz" in html
    )


def test_the_table_of_contents_leads_to_what_is_there(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    targets, places = set(re.findall(r'href="#([^"]+)"', html)), re.findall(r' id="([^"]+)"', html)
    assert len(places) == len(set(places)) and targets <= set(places) and set(FIGURES) <= targets
    files = set(re.findall(r'href="((?:figures|tables)/[^"]+)"', html))
    assert len(files) == 3 * len(FIGURES) + 15 and all((report / file).is_file() for file in files)


def test_every_figures_data_is_one_click_away(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="data:text/csv;base64,([^"]+)" download="([^"]+)"', html)
    assert {name: base64.b64decode(code) for code, name in links} == {
        f"{name}.csv": (report / "figures" / f"{name}.csv").read_bytes() for name in FIGURES
    }


def test_the_page_says_what_is_missing_and_what_differs(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    assert "2 finished runs reported, 1 <a" in html and re.search(
        r"<td>c</td>.*<td>unfinished</td>", html
    )
    assert "learning.method.name" in html.split("Differences between the runs")[1]
    rows = (report / "tables" / "differences.csv").read_text().splitlines()
    assert (
        rows[0] == "scheme,seeds,allocation.solver,learning.method.name"
        and rows[1] == "joint,0,kkt,liu"
    )


def test_long_data_is_only_beside_the_page(only, two_runs, tmp_path, monkeypatch):
    only("cdf")
    monkeypatch.setattr(page, "MOST_LINKED", 10)
    html = write_report([two_runs], tmp_path / "out").read_text(encoding="utf-8")
    assert "data:text/csv" not in html and 'href="figures/cdf.csv" download="cdf.csv"' in html


@pytest.mark.parametrize(
    ("kind", "names"),
    [("screen", ("accuracy", "decomposition", "topology")), ("ieee", ("pareto", "costs"))],
)
def test_the_same_runs_give_the_same_bytes(only, two_runs, tmp_path, kind, names):
    only(*names)
    one, two = (write_report([two_runs], tmp_path / name, kind).parent for name in ("one", "two"))
    files = sorted(path.relative_to(one) for path in one.rglob("*.*"))
    assert len(files) == 1 + 4 * len(names) + 15
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file


def test_ieee_files_are_a_column_wide_and_the_page_stays_as_it_is(only, two_runs, report, tmp_path):
    only("accuracy")
    out = write_report([two_runs], tmp_path / "out", "ieee").parent
    width = re.search(r'width="([\d.]+)pt"', (out / "figures" / "accuracy.svg").read_text())[1]
    assert float(width) / 72 == approx(3.5)
    pictures = [
        re.search(r"data:image/svg[^\"]+", (p / "index.html").read_text())[0] for p in (out, report)
    ]
    assert pictures[0] == pictures[1]


def test_a_sweep_has_its_figures_and_says_at_which_values_the_others_are(
    swept_folder, tmp_path, only
):
    only("accuracy-map", "rho-by-latency-threshold", "accuracy")
    html = write_report([swept_folder], tmp_path / "out").read_text(encoding="utf-8")
    assert "95 % interval (Student t) over n = 2 seeds" in html
    assert "Shown: bandwidth 20 MHz, latency threshold 15 ms; the data has all." in html
    assert (tmp_path / "out" / "figures" / "accuracy-map.pdf").is_file()
    assert (
        len((tmp_path / "out" / "figures" / "accuracy.csv").read_text().splitlines()) == 1 + 12 * 2
    )


def test_real_runs_make_a_report(real_runs, tmp_path, only):
    only("energy-by-bandwidth", "decomposition", "topology", "accuracy")
    html = write_report([real_runs], tmp_path / "out").read_text(encoding="utf-8")
    assert "2 schemes on the scenario tiny: 3 devices, 2 global rounds, seeds 0, 1" in html
    assert html.count("data:image/svg+xml") == 3  # nothing is learned, so no accuracy


def test_runs_of_different_versions_are_noted(tmp_path, write_run, only):
    only("cdf")
    write_run(tmp_path / "runs" / "a")
    other = write_run(tmp_path / "runs" / "b", seed=1)
    (other / "scenario.yaml").write_text(
        (other / "scenario.yaml").read_text().replace("git: abc", "git: def")
    )
    html = write_report([tmp_path / "runs"], tmp_path / "out").read_text(encoding="utf-8")
    assert "the runs were not made by the same versions: git abc / def." in html


def test_a_run_without_accuracy_partition_and_threshold(tmp_path, write_run):
    run = write_run(
        tmp_path / "a",
        accuracy=(float("nan"),) * 2,
        latency_s=(0.02, 0.03),
        threshold_s=None,
        targets=(),
    )
    (run / "partition.json").unlink()
    (run / "devices.csv").unlink()
    html = write_report([run], tmp_path / "out").read_text(encoding="utf-8")
    assert "no latency threshold" in html and html.count("data:image") == 6
    assert not (tmp_path / "out" / "figures" / "accuracy.pdf").exists()


def test_no_place_to_write(tmp_path, two_runs):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        write_report([two_runs], tmp_path / "file")


@pytest.fixture
def schemes(two_runs):
    return load_schemes([two_runs / "a", two_runs / "b"])


def drawn(draw, schemes):
    with style.styled(style.SCREEN):
        return draw(schemes, style.SCREEN)


def test_accuracy_curves(schemes):
    seconds, rounds = drawn(curves.accuracy_curves, schemes).axes
    assert seconds.lines[0].get_xydata().tolist() == [approx([0.05, 50]), approx([0.1, 90])]
    assert rounds.lines[1].get_xydata().tolist() == [approx([1, 50]), approx([3, 90])]


def test_accuracy_over_bits_and_joules(schemes):
    """10 Mbit up and 20 Mbit down, and 0.5 J a round; scheme a is evaluated in rounds 1 and 3, counted from 0."""
    bits, joules = drawn(curves.accuracy_by_spending, schemes).axes
    assert bits.lines[0].get_xydata().tolist() == [approx([60, 50]), approx([120, 90])]
    assert joules.lines[0].get_xydata().tolist() == [approx([1.0, 50]), approx([2.0, 90])]


def test_spending_over_decades_is_logarithmic_with_plain_numbers(write_run, tmp_path):
    folders = [
        write_run(tmp_path / name, scheme=name, bits_up=bits)
        for name, bits in (("a", 1e5), ("b", 1e9))
    ]
    figure = drawn(curves.accuracy_by_spending, load_schemes(folders))
    figure.draw_without_rendering()
    bits, joules = figure.axes
    assert bits.get_xscale() == "log" and joules.get_xscale() == "linear"
    labels = [label.get_text() for label in bits.get_xticklabels()]
    assert "1000" in labels and not any("$" in label for label in labels)


def test_latency_has_every_round_and_the_threshold(schemes):
    left, right = drawn(round_latency.latency_by_round, schemes).axes
    assert right.lines[1].get_ydata().tolist() == approx([30, 50, 40, 40])
    assert right.lines[2].get_ydata()[0] == approx(25)
    assert left.lines[2].get_xdata().tolist() == approx([30, 50]) and left.lines[3].get_xdata()[
        0
    ] == approx(40)
    assert "threshold 25 ms" in [text.get_text() for text in left.texts]


def test_one_round_has_one_tick(scheme_of):
    right = drawn(
        round_latency.latency_by_round, [scheme_of(latency_s=(0.02,), accuracy=(0.5,))]
    ).axes[1]
    low, high = right.get_xlim()
    assert [tick for tick in right.get_xticks() if low <= tick <= high] == [0]


def test_devices_show_ratio_and_share(schemes):
    ratio, share = drawn(device_allocation.device_allocation, schemes).axes
    assert ratio.lines[0].get_ydata().tolist() == [0.25, 0.75]
    assert share.lines[0].get_ydata().tolist() == approx([40, 60])


def test_timeline_is_the_middle_round_since_its_start(schemes):
    joint, other = drawn(timeline.round_timeline, schemes).axes
    bars = [
        (bar.get_x(), bar.get_width()) for bar in joint.patches
    ]  # download, train, upload of devices 0 and 1
    assert [x for x, _ in bars] == approx([0, 0, 0, 0, 3.125, 6.25])
    assert [width for _, width in bars] == approx([0, 0, 3.125, 6.25, 9.375, 18.75])
    assert max(bar.get_x() + bar.get_width() for bar in other.patches) == approx(40)
    assert (
        len([line for line in other.lines if line.get_marker() == "x"]) == 2
    )  # both devices are late


def test_a_long_round_gets_its_own_axis(tmp_path, write_run, schemes):
    assert timeline.shares_axis(schemes)
    slow = load_schemes(
        [write_run(tmp_path / "slow", scheme="slow", method="own", latency_s=(0.1,) * 4)]
    )
    assert not timeline.shares_axis(schemes + slow)


def test_costs_per_round(schemes):
    bits, joules = drawn(payload_and_energy.payload_and_energy, schemes).axes
    assert [bar.get_width() for bar in bits.patches] == approx(
        [10, 10, 20, 20]
    )  # Mbit up, up, down, down
    assert [bar.get_width() for bar in joules.patches] == approx(
        [0.1, 0.1, 0.4, 0.4]
    )  # train, train, upload, upload


def test_partition_is_drawn_once_for_all(schemes):
    panel = drawn(label_partition.label_partition, schemes).axes[0]
    assert panel.images[0].get_array().tolist() == [[30, 0, 5], [0, 20, 0]]
    assert len(label_partition.partitions(schemes)) == 1


def test_looks_are_fixed_per_scheme_and_all_different(tmp_path, write_run, schemes):
    own = [
        write_run(tmp_path / str(i), scheme=f"own {i}", method="./x.py:X", solver="kkt")
        for i in range(12)
    ]
    many = colours.scheme_styles(schemes + load_schemes(own))
    assert (
        many["joint"]
        == colours.scheme_styles(schemes[:1])["joint"]
        == colours.SeriesStyle("#0072B2", "o", "-")
    )
    assert len(set(many.values())) == 14
    local = [write_run(tmp_path / kind, scheme=kind, method=kind) for kind in ("fedalt", "fedsim")]
    assert [look.colour for look in colours.scheme_styles(load_schemes(local)).values()] == [
        "#CC79A7",
        "#D55E00",
    ]


def test_in_grey_every_line_has_its_own_dashes(tmp_path, write_run):
    folders = [write_run(tmp_path / str(i), scheme=f"own {i}", method="./x.py:X") for i in range(8)]
    schemes = load_schemes(folders)
    for made in (
        colours.scheme_styles(schemes, grey=True),
        colours.series_styles(schemes, grey=True),
    ):
        assert len({str(look.dashes) for look in made.values()}) == 8
    assert (
        len({str(look.dashes) for look in colours.scheme_styles(schemes).values()}) == 1
    )  # colours do it on a screen


def test_in_grey_a_dark_bar_does_not_swallow_the_threshold(tmp_path, write_run):
    schemes = load_schemes([write_run(tmp_path / "late", latency_s=(0.05,) * 4)])
    with style.styled(style.IEEE):
        figure = timeline.round_timeline(schemes, style.IEEE)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    grey = np.asarray(canvas.buffer_rgba())[..., :3].mean(axis=2)
    x, y = (
        figure.axes[0].transData.transform([(25.0, 1.0), (40.0, 1.0)]).astype(int).T
    )  # on the line, beside it
    rows = slice(len(grey) - y[0] - 6, len(grey) - y[0] + 6)  # inside the upload of device 1
    assert np.ptp(grey[rows, x[1] - 2 : x[1] + 3]) < 5
    assert np.ptp(grey[rows, x[0] - 2 : x[0] + 3]) > 100


def test_of_many_devices_twenty_are_shown_with_the_last(tmp_path, write_run):
    import pandas as pd

    run = load_schemes([write_run(tmp_path / "many")])[0].first
    wide = pd.concat(
        [run.device_rounds.assign(device=run.device_rounds["device"] + 2 * i) for i in range(30)]
    )
    object.__setattr__(run, "device_rounds", wide)
    late = run.spans.assign(device=37, end_s=run.spans["end_s"] + 1)
    object.__setattr__(run, "spans", pd.concat([run.spans, late]))
    shown = timeline.shown_devices(timeline.logged_round(run, 2))
    assert len(shown) <= timeline.MOST_DEVICES and {0, 37, 59} <= set(shown)


def test_a_long_label_is_cut_in_its_name_and_not_in_what_tells_it_apart():
    label = "personalization only (dataset fashion-mnist)"
    assert labelled_bars.shortened(label, 44) == label
    assert labelled_bars.shortened(label, 36) == "personaliza… (dataset fashion-mnist)"
    assert labelled_bars.shortened(label, 25) == "personalization only (da…"  # no room for both
    assert labelled_bars.shortened("a name without anything in brackets", 12) == "a name with…"

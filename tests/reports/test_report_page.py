"""The page and its figures: what is drawn is what was logged; the same runs give the same bytes."""

import re

import matplotlib
import pytest
from pytest import approx

from reports import curves, figures, style, timeline
from reports.load import ReportError
from reports.page import write_report
from reports.schemes import load_schemes

NASTY = "<script>alert(1)</script> & 'x'"
FIGURES = ("accuracy", "spending", "latency", "devices", "timeline", "costs", "partition", "loss")


@pytest.fixture
def two_runs(tmp_path, write_run):
    runs = tmp_path / "runs"
    write_run(runs / "a", scheme="joint", warnings=["device 1 <b>fades</b>"])
    write_run(runs / "b", scheme=NASTY, method="fedavg", solver="equal", latency_s=(0.03, 0.05, 0.04, 0.04))
    return runs


def test_page_files_escapes_and_bytes(tmp_path, two_runs, write_run):
    unfinished = write_run(two_runs / "c", seed=5)
    (unfinished / "summary.json").unlink()
    page = write_report([two_runs], tmp_path / "one")
    assert page == tmp_path / "one" / "index.html"
    for name in FIGURES:
        for kind in ("pdf", "png", "svg"):
            assert (tmp_path / "one" / "figures" / f"{name}.{kind}").stat().st_size > 1000
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html and "&lt;script&gt;alert(1)" in html
    assert "<b>fades" not in html and "device 1 &lt;b&gt;fades&lt;/b&gt;" in html
    assert not re.search(r"""(src|href)=["'](https?:)?//""", html) and "@import" not in html
    assert html.count("data:image/svg+xml;base64,") == len(FIGURES)
    assert "Left out, unfinished:</strong> c." in html
    assert str(tmp_path) not in html
    assert "joint: every round takes 25.0\u00a0ms" in html and "not reached" in html and "200 MHz" in html
    write_report([two_runs], tmp_path / "two")
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*"))
    assert len(files) == 1 + 3 * len(FIGURES) + 8
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


def test_a_run_without_accuracy_partition_and_threshold(tmp_path, write_run):
    run = write_run(tmp_path / "a", accuracy=(float("nan"),) * 2, latency_s=(0.02, 0.03), threshold_s=None, targets=())
    (run / "partition.json").unlink()
    (run / "devices.csv").unlink()
    html = write_report([run], tmp_path / "out").read_text(encoding="utf-8")
    assert "no latency threshold" in html and html.count("data:image") == 4
    assert not (tmp_path / "out" / "figures" / "accuracy.pdf").exists()


def test_no_place_to_write(tmp_path, two_runs):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        write_report([two_runs], tmp_path / "file")


@pytest.fixture
def schemes(two_runs):
    return load_schemes([two_runs / "a", two_runs / "b"])


def drawn(draw, schemes):
    with matplotlib.rc_context(style.settings(wide=True)):
        return draw(schemes, True)


def test_accuracy_curves(schemes):
    seconds, rounds = drawn(curves.accuracy, schemes).axes
    assert seconds.lines[0].get_xydata().tolist() == [approx([0.05, 50]), approx([0.1, 90])]
    assert rounds.lines[1].get_xydata().tolist() == [approx([1, 50]), approx([3, 90])]


def test_accuracy_over_bits_and_joules(schemes):
    """10 Mbit up and 20 Mbit down, and 0.5 J a round; scheme a is evaluated in rounds 1 and 3, counted from 0."""
    bits, joules = drawn(curves.spending, schemes).axes
    assert bits.lines[0].get_xydata().tolist() == [approx([60, 50]), approx([120, 90])]
    assert joules.lines[0].get_xydata().tolist() == [approx([1.0, 50]), approx([2.0, 90])]


def test_spending_over_decades_is_logarithmic_with_plain_numbers(write_run, tmp_path):
    folders = [write_run(tmp_path / name, scheme=name, bits_up=bits) for name, bits in (("a", 1e5), ("b", 1e9))]
    figure = drawn(curves.spending, load_schemes(folders))
    figure.draw_without_rendering()
    bits, joules = figure.axes
    assert bits.get_xscale() == "log" and joules.get_xscale() == "linear"
    labels = [label.get_text() for label in bits.get_xticklabels()]
    assert "1000" in labels and not any("$" in label for label in labels)


def test_latency_has_every_round_and_the_threshold(schemes):
    left, right = drawn(figures.latency, schemes).axes
    assert right.lines[1].get_ydata().tolist() == approx([30, 50, 40, 40])
    assert right.lines[2].get_ydata()[0] == approx(25)
    assert left.lines[2].get_xdata().tolist() == approx([30, 50]) and left.lines[3].get_xdata()[0] == approx(40)
    assert "threshold 25 ms" in [text.get_text() for text in left.texts]


def test_devices_show_ratio_and_share(schemes):
    ratio, share = drawn(figures.devices, schemes).axes
    assert ratio.lines[0].get_ydata().tolist() == [0.25, 0.75]
    assert share.lines[0].get_ydata().tolist() == approx([40, 60])


def test_timeline_is_the_middle_round_since_its_start(schemes):
    joint, other = drawn(timeline.timeline, schemes).axes
    bars = [(bar.get_x(), bar.get_width()) for bar in joint.patches]  # download, train, upload of devices 0 and 1
    assert [x for x, _ in bars] == approx([0, 0, 0, 0, 3.125, 6.25])
    assert [width for _, width in bars] == approx([0, 0, 3.125, 6.25, 9.375, 18.75])
    assert max(bar.get_x() + bar.get_width() for bar in other.patches) == approx(40)
    assert len([line for line in other.lines if line.get_marker() == "x"]) == 2  # both devices are late


def test_a_long_round_gets_its_own_axis(tmp_path, write_run, schemes):
    assert timeline.shares_axis(schemes)
    slow = load_schemes([write_run(tmp_path / "slow", scheme="slow", method="own", latency_s=(0.1,) * 4)])
    assert not timeline.shares_axis(schemes + slow)


def test_costs_per_round(schemes):
    bits, joules = drawn(figures.costs, schemes).axes
    assert [bar.get_width() for bar in bits.patches] == approx([10, 10, 20, 20])  # Mbit up, up, down, down
    assert [bar.get_width() for bar in joules.patches] == approx([0.1, 0.1, 0.4, 0.4])  # train, train, upload, upload


def test_partition_is_drawn_once_for_all(schemes):
    panel = drawn(timeline.partition, schemes).axes[0]
    assert panel.images[0].get_array().tolist() == [[30, 0, 5], [0, 20, 0]]
    assert len(timeline.partitions(schemes)) == 1


def test_looks_are_fixed_per_scheme_and_all_different(tmp_path, write_run, schemes):
    own = [write_run(tmp_path / str(i), scheme=f"own {i}", method="./x.py:X", solver="kkt") for i in range(12)]
    many = style.looks(schemes + load_schemes(own))
    assert many["joint"] == style.looks(schemes[:1])["joint"] == style.Look("#0072B2", "o", "-")
    assert len(set(many.values())) == 14
    local = [write_run(tmp_path / kind, scheme=kind, method=kind) for kind in ("fedalt", "fedsim")]
    assert [look.colour for look in style.looks(load_schemes(local)).values()] == ["#CC79A7", "#D55E00"]


def test_of_many_devices_twenty_are_shown_with_the_last(tmp_path, write_run):
    import pandas as pd

    run = load_schemes([write_run(tmp_path / "many")])[0].first
    wide = pd.concat([run.device_rounds.assign(device=run.device_rounds["device"] + 2 * i) for i in range(30)])
    object.__setattr__(run, "device_rounds", wide)
    late = run.spans.assign(device=37, end_s=run.spans["end_s"] + 1)
    object.__setattr__(run, "spans", pd.concat([run.spans, late]))
    shown = timeline._shown(run, 2)
    assert len(shown) <= timeline.MOST_DEVICES and {0, 37, 59} <= set(shown)

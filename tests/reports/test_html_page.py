"""The page and its files; the same runs give the same bytes."""

import base64
import itertools
import re

import pytest
from pytest import approx

from edgesim.errors import ResultsError
from reports import figure_files
from reports.html_page import write_report

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


@pytest.mark.slow
def test_every_figure_in_every_format_with_its_data(report):
    for name in FIGURES:
        for kind in ("pdf", "png", "svg"):
            assert (report / "figures" / f"{name}.{kind}").stat().st_size > 1000
        assert len((report / "figures" / f"{name}.csv").read_text().splitlines()) > 1
    assert {path.stem for path in (report / "figures").iterdir()} == set(FIGURES)
    tables = {path.name for path in (report / "tables").iterdir()}
    names = ("schemes", "costs", "targets", "devices", "differences")
    assert tables == {f"{name}.{kind}" for name in names for kind in ("csv", "md", "tex")}


@pytest.mark.slow
def test_the_page_escapes_and_needs_nothing_from_outside(report, two_runs):
    html = (report / "index.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in html and "&lt;script&gt;alert(1)" in html
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


@pytest.mark.slow
def test_the_table_of_contents_leads_to_what_is_there(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    targets, places = set(re.findall(r'href="#([^"]+)"', html)), re.findall(r' id="([^"]+)"', html)
    assert len(places) == len(set(places)) and targets <= set(places) and set(FIGURES) <= targets
    assert "<strong>Payload and energy.</strong>" in html
    files = set(re.findall(r'href="((?:figures|tables)/[^"]+)"', html))
    assert len(files) == 3 * len(FIGURES) + 15 and all((report / file).is_file() for file in files)


@pytest.mark.slow
def test_every_figures_data_is_one_click_away(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="data:text/csv;base64,([^"]+)" download="([^"]+)"', html)
    assert {name: base64.b64decode(code) for code, name in links} == {
        f"{name}.csv": (report / "figures" / f"{name}.csv").read_bytes() for name in FIGURES
    }


@pytest.mark.slow
def test_the_page_says_what_is_missing_and_what_differs(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    assert "2 finished runs reported, 1 <a" in html and re.search(
        r"<td>c</td>.*<td>unfinished</td>", html
    )
    assert "learning.method.name" in html.split("Differences between the runs")[1]
    rows = (report / "tables" / "differences.csv").read_text().splitlines()
    assert (
        rows[0] == "scheme,seeds,allocation.solver,learning.method.name"
        and "joint,0,kkt,liu" in rows
    )


@pytest.mark.slow
def test_long_data_is_only_beside_the_page(only_figures, two_runs, tmp_path, monkeypatch):
    monkeypatch.setattr(figure_files, "MOST_LINKED", 10)
    html = write_report([two_runs], tmp_path / "out", only_figures("cdf")).read_text(
        encoding="utf-8"
    )
    assert "data:text/csv" not in html and 'href="figures/cdf.csv" download="cdf.csv"' in html


@pytest.fixture(scope="module")
def ieee_report(only_figures, two_runs, tmp_path_factory):
    """One figure in the style of a journal; only to be read."""
    options = only_figures("accuracy", style="ieee")
    return write_report([two_runs], tmp_path_factory.mktemp("ieee") / "out", options).parent


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(only_figures, two_runs, ieee_report, tmp_path):
    """`test_a_figure_alone_has_the_bytes_that_it_has_among_all` has more figures."""
    options = only_figures("accuracy", style="ieee")
    again = write_report([two_runs], tmp_path / "again", options).parent
    files = sorted(path.relative_to(again) for path in again.rglob("*.*"))
    assert len(files) == 1 + 4 + 15
    for file in files:
        assert (again / file).read_bytes() == (ieee_report / file).read_bytes(), file


@pytest.mark.slow
def test_a_figure_alone_has_the_bytes_that_it_has_among_all(
    only_figures, two_runs, report, tmp_path
):
    names = ("decomposition", "topology", "pareto")
    alone = write_report([two_runs], tmp_path / "out", only_figures(*names)).parent
    files = [path.relative_to(alone) for path in alone.rglob("*.*") if path.suffix != ".html"]
    assert len(files) == 4 * len(names) + 15
    for file in files:
        assert (alone / file).read_bytes() == (report / file).read_bytes(), file


@pytest.mark.slow
def test_ieee_files_are_a_column_wide_and_the_page_stays_as_it_is(ieee_report, report):
    svg = (ieee_report / "figures" / "accuracy.svg").read_text()
    assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) / 72 == approx(3.5)
    pictures = [
        re.search(r"data:image/svg[^\"]+", (place / "index.html").read_text())[0]
        for place in (ieee_report, report)
    ]
    assert pictures[0] == pictures[1]


@pytest.mark.slow
def test_a_sweep_has_its_figures_and_says_at_which_values_the_others_are(
    swept_folder, tmp_path, only_figures
):
    options = only_figures("accuracy-map", "rho-by-latency-threshold", "accuracy")
    html = write_report([swept_folder], tmp_path / "out", options).read_text(encoding="utf-8")
    assert "dots: the values of two seeds" in html and "(Student t) over" not in html
    assert "Shown: bandwidth 20\xa0MHz, latency threshold 15\xa0ms; the data has all." in html
    assert (tmp_path / "out" / "figures" / "accuracy-map.pdf").is_file()
    assert (
        len((tmp_path / "out" / "figures" / "accuracy.csv").read_text().splitlines()) == 1 + 12 * 2
    )


@pytest.mark.slow
def test_real_runs_make_a_report(real_runs, tmp_path, only_figures):
    options = only_figures("energy-by-bandwidth", "decomposition", "topology")
    html = write_report([real_runs], tmp_path / "out", options).read_text(encoding="utf-8")
    assert "2 schemes on the scenario tiny: 4 devices, 2 global rounds, seeds 0, 1" in html
    assert html.count("data:image/svg+xml") == 3
    with pytest.raises(ResultsError, match='names "accuracy"'):  # nothing is learned
        write_report([real_runs], tmp_path / "other", only_figures("cdf", "accuracy"))


@pytest.mark.slow
def test_tables_along_a_key_leave_out_those_that_change_with_it(tmp_path, write_run, only_figures):
    for every, count in itertools.product((1, 2), (3, 4)):
        extra = f"evaluate: {{every: {every}}}\ndevices: [{{count: {count}}}]"
        folder = tmp_path / "runs" / f"{every}-{count}"
        write_run(folder, bandwidth=f"{every} MHz", extra=extra)
    options = only_figures("cdf", along="network.bandwidth")
    table = write_report([tmp_path / "runs"], tmp_path / "out", options).parent / "tables"
    lines = (table / "latency-by-bandwidth.md").read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith("| Scheme | count | 1 MHz | 2 MHz |") and len(lines) == 4 + 2


@pytest.mark.slow
def test_runs_of_different_versions_are_noted(tmp_path, write_run, only_figures):
    write_run(tmp_path / "runs" / "a")
    other = write_run(tmp_path / "runs" / "b", seed=1)
    (other / "scenario.yaml").write_text(
        (other / "scenario.yaml").read_text().replace("git: abc", "git: def")
    )
    out = write_report([tmp_path / "runs"], tmp_path / "out", only_figures("cdf"))
    html = out.read_text(encoding="utf-8")
    assert "the runs were not made by the same versions: git abc / def." in html


@pytest.mark.slow
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

"""The options of a report: a file, the command line, and what they draw."""

import csv
import io
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.cli.app import app
from edgesim.errors import ResultsError, ScenarioError
from edgesim.results.run_search import find_runs
from reports.figure_catalog import report_figures
from reports.option_readers import FIGURES, METRICS
from reports.report_options import (
    KEYS,
    explain_options,
    options_from,
    read_options,
)
from reports.run_data.scheme_grouping import load_schemes
from reports.run_data.statistics import metrics

ROOT = Path(__file__).parents[2]

FILE = """
schemes: {liu: "Ours, $\\\\rho$ & 100 %", fedavg: FedAvg}
slice: {network.bandwidth: 0.02 GHz}
figures: [accuracy, latency-by-latency-threshold]
x: rounds
panels: lettered
style: ieee
columns: 2
font: serif
"""


@pytest.fixture(scope="module")
def adjusted(swept_folder, tmp_path_factory):
    """A report by the file above; what the command line adds wins."""
    place = tmp_path_factory.mktemp("adjusted")
    (place / "report.yaml").write_text(FILE, encoding="utf-8")
    given = ["report", str(swept_folder), "--options", str(place / "report.yaml")]
    done = CliRunner().invoke(app, [*given, "x=time,bits", "--out", str(place / "out")])
    assert done.exit_code == 0, done.output
    return place / "out"


@pytest.mark.slow
def test_only_the_chosen_figures_schemes_and_points_are_there(adjusted):
    names = {path.stem for path in (adjusted / "figures").iterdir()}
    assert names == {"accuracy", "latency-by-latency-threshold"}
    rows = list(csv.DictReader(io.StringIO((adjusted / "tables" / "schemes.csv").read_text())))
    assert [row["scheme"] for row in rows] == [
        r"Ours, $\rho$ & 100 % (latency threshold 15 ms)",
        r"Ours, $\rho$ & 100 % (latency threshold 30 ms)",
        "FedAvg (latency threshold 15 ms)",
        "FedAvg (latency threshold 30 ms)",
    ]


@pytest.mark.slow
def test_a_display_name_is_escaped_in_latex_and_on_the_page(adjusted):
    text = (adjusted / "tables" / "schemes.tex").read_text(encoding="utf-8")
    assert r"Ours, \$\textbackslash{}rho\$ \& 100 \%" in text
    assert r"Ours, $\rho$ &amp; 100 %" in (adjusted / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_figure_over_two_columns_is_that_wide(adjusted):
    svg = (adjusted / "figures" / "accuracy.svg").read_text(encoding="utf-8")
    assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) == pytest.approx(7.16 * 72)
    pdf = (adjusted / "figures" / "accuracy.pdf").read_bytes()
    assert b"STIX" in pdf and b"/Subtype /CIDFontType2" in pdf  # TrueType, as papers must have


@pytest.mark.slow
def test_the_file_beside_the_results_is_read_by_itself(two_runs, tmp_path):
    results = shutil.copytree(two_runs / "a", tmp_path / "results" / "a").parent
    (results / "report.yaml").write_text("figures: costs\npanels: apart\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["report", str(results)])
    assert done.exit_code == 0, done.output
    files = {path.name for path in (results / "report" / "figures").iterdir()}
    kinds = ("pdf", "png", "svg")
    assert files == {"costs.csv", *(f"costs-{x}.{kind}" for x in "ab" for kind in kinds)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("figurs: [accuracy]", "report.yaml:1: a report has no key figurs; did you mean figures?"),
        ("style: nature", 'report.yaml:1: style is "nature"; allowed is screen or ieee'),
        ("columns: 3", "report.yaml:1: columns is 3; write 1 or 2"),
        ("x: [miles]", "report.yaml:1: x"),
        (
            "x: [seconds]",  # as near to rounds as a misspelt word
            'report.yaml:1: x is "seconds"; write a list of time, rounds, bits, energy',
        ),
        ("schemes: 3", "report.yaml:1: schemes is 3; write a list of labels"),
        (
            "schemes: {liu: A, fedavg: A}",
            "report.yaml:1: schemes is a mapping with a display na",
        ),
        (
            "schemes: {liu: ' '}",
            "report.yaml:1: schemes is a mapping with a display name witho",
        ),
        (
            "figures: [costs, acuracy]",
            'report.yaml:1: figures is "acuracy"; did you mean accuracy?',
        ),
        ("figures: acuracy-by-band", 'report.yaml:1: figures is "acuracy"; did you mean accuracy?'),
        ("figures: 3", "report.yaml:1: figures is 3; write a list of figures, such as [acc"),
        ("schemes: [a, b, a]", "report.yaml:1: schemes is a list with a twice; write each of them"),
        ("figures: [latency, costs, latency]", "report.yaml:1: figures is a list with latency tw"),
        ("x: 'time, time'", 'report.yaml:1: x is "time, time" with time twice; write each of them'),
        ("- a", "report.yaml:1: the report.yaml is a list; write a mapping of keys."),
        ("~", "report.yaml:1: the report.yaml is empty; write a mapping of keys."),
        ("columns: 1.0", "report.yaml:1: columns is 1.0; write 1 or 2"),
        ("schemes: {liu: true}", "report.yaml:1: schemes is true; write a display name, true and"),
        ("schemes: {liu: {a: b}}", "report.yaml:1: schemes is a mapping; write a display name"),
        ("slice: [1]", "report.yaml:1: slice is a list; write a mapping from swept keys"),
    ],
)
def test_a_wrong_option_is_one_sentence_with_its_line(tmp_path, text, sentence):
    path = tmp_path / "report.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as error:
        read_options(path)
    assert str(error.value).removeprefix(f"{tmp_path}/").startswith(sentence)


def test_a_missing_file_of_options_is_no_scenario(tmp_path):
    with pytest.raises(ScenarioError, match=r"give the path of a report\.yaml in YAML"):
        read_options(tmp_path / "absent.yaml")


@pytest.mark.parametrize("text", ["", "# style: ieee\n"])
def test_a_file_without_an_option_has_the_defaults(tmp_path, text):
    path = tmp_path / "report.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_options(path) == read_options()
    assert read_options(path, ["columns=1"]).columns == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["style=ieee", "style.font=serif"], "style.font cannot be set, because style is not a "),
        (
            ["units={latency: km}"],
            'units.latency="km"; write a unit of latency, such as ms',
        ),
        (["units={latency: 5 s}"], 'units.latency="5 s"; write a unit of latency, such as ms'),
        (["units={latencies: s}"], "units.latencies is unknown; did you mean latency?"),
        (["units=s"], 'units="s"; write a mapping from latency, time, bits, energy to a unit'),
        (
            ["formats=[pdf]", "formats.5=png"],
            "formats.5 is not there: formats has 1 item, formats.0",
        ),
    ],
)
def test_an_option_that_leads_nowhere_is_one_sentence(changes, sentence):
    with pytest.raises(ScenarioError) as error:
        read_options(overrides=changes)
    assert str(error.value).startswith(f"command line: {sentence}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            "figures=staleness",
            'figures names "staleness", which these results do not have; there are accuracy-by-',
        ),
        ("schemes=[fedavg, fedpro]", 'schemes names "fedpro"'),
        ("slice={noise: 1}", 'slice names "noise"'),
        ("slice={bandwidth: 11 MHz}", 'slice names "bandwidth 11 MHz"'),
        (
            "slice={bandwidth:10MHz}",
            'slice names "bandwidth:10MHz", which these results do not have; '
            "write a blank after the colon: {bandwidth: 10MHz}",
        ),
        ("schemes={fedavg:FedAvg}", "write a blank after the colon: {fedavg: FedAvg}"),
        ("along=rounds", 'along names "rounds"'),
    ],
)
def test_a_name_that_the_results_do_not_have_is_one_sentence(
    swept_folder, tmp_path, change, sentence
):
    out = ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["report", str(swept_folder), change, *out])
    assert done.exit_code == 2 and sentence in done.stderr
    assert done.stderr.startswith("command line: ")
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_one_key_is_not_the_axis_and_the_family(swept_folder, tmp_path):
    changes = ["along=bandwidth", "family=network.bandwidth", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["report", str(swept_folder), *changes])
    sentence = "family names network.bandwidth, which is along; write another key."
    assert (done.exit_code, done.stderr) == (2, f"command line: {sentence}\n")


@pytest.mark.slow
def test_a_name_that_the_results_do_not_have_is_found_in_its_file(swept_folder, tmp_path):
    out, file = tmp_path / "out", tmp_path / "own.yaml"
    file.write_text("style: ieee\nslice:\n  network: {bandwidth: 11 MHz}\n")
    options = ["--options", str(file), "--out", str(out)]
    done = CliRunner().invoke(app, ["report", str(swept_folder), *options])
    assert done.exit_code == 2
    assert 'own.yaml:2: slice names "network.bandwidth 11 MHz", which these' in done.stderr

    shutil.copytree(swept_folder, folder := tmp_path / "swept")
    (folder / "report.yaml").write_text("# mine\nalong: rounds\n")
    with pytest.raises(ResultsError, match=r'swept/report\.yaml:2: along names "rounds"'):
        edgesim.plot.report(folder, out=out)
    with pytest.raises(ResultsError, match=r'^The report.s along names "rounds"'):
        edgesim.plot.report(folder, {"along": "rounds"}, out)


def test_every_key_is_explained_with_an_example_that_is_allowed():
    text = explain_options()
    assert all(f"\n{name}: " in f"\n{text}" for name in KEYS)
    for line in re.findall(r"^    (\w+=.*)$", text, re.MULTILINE):
        read_options(None, [line])
    assert re.search(r"^slice: .*without the key\n.*a value or none", text, re.MULTILINE)


def test_python_takes_the_same_keys():
    assert options_from({"x": "rounds", "columns": 2}) == read_options(
        None, ["x=rounds", "columns=2"]
    )
    with pytest.raises(ScenarioError) as unknown:
        options_from({"figur": 1})
    assert str(unknown.value) == "options: a report has no key figur; did you mean figures?"
    with pytest.raises(ScenarioError, match=r"^options: columns is 3; write 1 or 2"):
        options_from({"columns": 3})


def test_the_names_of_figures_are_those_of_the_page_and_of_the_metrics():
    page = (ROOT / "docs" / "use" / "reports.md").read_text(encoding="utf-8")
    table = page.partition("## The figures")[2].partition("\n\n| ")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in f"| {table}".splitlines()[2:]]
    names = {name for cell in cells for name in re.findall("`([^`]+)`", cell)}
    assert names == {*FIGURES, *(f"{metric}-by-KEY" for metric in METRICS)}
    assert tuple(metric.name for metric in metrics.METRICS) == METRICS


@pytest.mark.slow
def test_every_figure_of_results_may_be_asked_for(swept_folder):
    schemes = load_schemes(find_runs([swept_folder]).finished)
    figures, _ = report_figures(schemes)
    assert options_from({"figures": [each.name for each in figures]}).figures


def test_a_misspelt_figure_is_told_before_any_run_is_read(tmp_path):
    done = CliRunner().invoke(app, ["report", str(tmp_path / "no-runs"), "figures=accuracies"])
    assert done.exit_code == 2
    assert done.stderr == 'command line: figures="accuracies"; did you mean accuracy?\n'


@pytest.fixture
def units_file(tmp_path):
    path = tmp_path / "report.yaml"
    path.write_text("units:\n  latency: us\n  energy: mJ\n", encoding="utf-8")
    return path


def test_a_unit_of_the_command_line_joins_those_of_the_file(units_file):
    units = read_options(units_file, ["units.latency=s"]).units
    assert (units.latency, units.time, units.energy) == ("s", "s", "mJ")


def test_the_label_of_a_scheme_may_have_dots(tmp_path):
    """schemes.v1.5 counted into schemes.v1, which is not a list."""
    texts = ["schemes.v1.5=A", "schemes.v1.5.x=B", "schemes.joint=C"]
    assert read_options(None, texts).schemes == {"v1.5": "A", "v1.5.x": "B", "joint": "C"}
    (path := tmp_path / "report.yaml").write_text("schemes: [joint, v1.5]\n")
    assert list(read_options(path, ["schemes.0=fedavg"]).schemes) == ["fedavg", "v1.5"]


def test_an_unknown_quantity_has_its_own_place(units_file):
    """It was that of `units`: the first line of the file, also for one of the command line."""
    with pytest.raises(ScenarioError) as wrong:
        read_options(units_file, ["units.latenc=s"])
    assert str(wrong.value) == "command line: units.latenc is unknown; did you mean latency?"
    units_file.write_text("units:\n  latency: us\n  joules: mJ\n", encoding="utf-8")
    with pytest.raises(ScenarioError) as wrong:
        read_options(units_file)
    assert str(wrong.value).endswith(
        "report.yaml:3: units.joules is unknown; allowed is latency or time or bits or energy"
    )

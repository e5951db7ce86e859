"""`edgesim report` on the command line."""

import resource
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import reports.plot as plot
from edgesim import load, simulate
from edgesim.cli.app import app
from reports.command import _missing_glyphs, _progress

OWN_METRIC = """
name: own
rounds: 3
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices: [{count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
allocation: {solver: equal}
learning: {dataset: none.npz, partition: {kind: iid}, model: mlp, batch_size: 10,
           method: {name: fedavg, lr: 0.1, local_steps: 1}, metric: "./metric.py:top3"}
"""
TOP3 = """
def top3(outputs, y):
    return (outputs.topk(3).indices == y[:, None]).any(1).float()
"""


@pytest.mark.slow
def test_a_metric_of_the_users_own_has_its_figure_and_its_last_value(tmp_path):
    (tmp_path / "own.yaml").write_text(OWN_METRIC)
    (tmp_path / "metric.py").write_text(TOP3)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(90, 4)), np.arange(90) % 5
    data = {"x_train": x[:40], "y_train": y[:40], "x_test": x[40:], "y_test": y[40:]}
    runs, out = tmp_path / "runs", tmp_path / "out"
    for seed in range(3):
        scenario = load(tmp_path / "own.yaml", ["evaluate.every=2"])
        simulate(scenario, data=data, allow_code=True, seed=seed, out=runs / str(seed))
    done = CliRunner().invoke(app, ["report", str(runs), "figures=top3", "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    tables = [
        pd.read_csv(runs / str(seed) / "rounds.csv").dropna(subset="top3") for seed in (0, 1, 2)
    ]
    assert all(list(table["round"]) == [1, 2] and 0 < table.top3.min() <= 1 for table in tables)
    drawn = pd.read_csv(out / "figures" / "top3.csv")
    values = np.array([table.top3 for table in tables])
    assert list(drawn.rounds) == [2, 3] and list(drawn.seeds) == [3, 3]
    np.testing.assert_allclose(drawn.top3, values.mean(0))
    np.testing.assert_allclose(drawn.ci95, 4.30265 * values.std(0, ddof=1) / 3**0.5, rtol=1e-5)
    schemes = pd.read_csv(out / "tables" / "schemes.csv")
    assert schemes.final_top3[0] == pytest.approx(values[:, -1].mean())
    page = plot.report(runs, {"figures": ["top3"], "style": "ieee"}, tmp_path / "again")
    assert (page.parent / "figures" / "top3.csv").read_bytes() == (
        out / "figures" / "top3.csv"
    ).read_bytes()
    seconds, rounds = plot.figure(runs, "top3").axes
    np.testing.assert_allclose(seconds.lines[0].get_xydata(), drawn[["time_s", "top3"]])
    np.testing.assert_allclose(rounds.lines[0].get_ydata(), drawn.top3)
    assert seconds.get_ylabel() == "top3"


@pytest.mark.slow
def test_a_file_that_may_not_grow_stops_the_report_in_one_sentence(run, tmp_path):
    """What a full disk does, done by the system: no file may exceed 20 kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        given = ["report", str(run), "figures=cdf", "--out", str(tmp_path / "out")]
        result = CliRunner().invoke(app, given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1
    assert "The report cannot be written to" in result.stderr and "File too large" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_without_a_folder_it_says_what_to_give():
    result = CliRunner().invoke(app, ["report"])
    sentence = "command line: give a run's folder, or one that contains some; see edgesim report"
    assert (result.exit_code, result.stderr) == (2, f"{sentence} --help.\n")


@pytest.mark.slow
def test_the_command_line_takes_the_style(run, tmp_path):
    result = CliRunner().invoke(
        app, ["report", str(run), "figures=cdf", "--out", str(tmp_path / "out"), "--style", "ieee"]
    )
    assert result.exit_code == 0 and result.stdout == f"report: {tmp_path / 'out' / 'index.html'}\n"
    assert 'width="252pt"' in (tmp_path / "out" / "figures" / "cdf.svg").read_text()  # 3.5 in
    assert CliRunner().invoke(app, ["report", str(run), "--style", "nature"]).exit_code == 2


@pytest.mark.slow
def test_characters_without_a_glyph_are_one_sentence(run, tmp_path):
    given = ["report", str(run), "figures=cdf", "schemes={joint: \u4e2d\u4e2d}"]
    result = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "out")])
    sentence = "warning: figures show boxes for \u4e2d, which their font lacks\n"
    assert (result.exit_code, result.stderr) == (0, sentence)


def test_a_terminal_obeys_no_character_without_a_glyph(capsys):
    with _missing_glyphs():
        warnings.warn("Glyph 155 (\\x9b) missing from font(s) DejaVu Sans.", stacklevel=1)
    sentence = "warning: figures show boxes for \\x9b, which their font lacks\n"
    assert capsys.readouterr().err == sentence


def test_titles_beside_the_bar_are_no_markup(monkeypatch, capsys):
    """They contain keys and metrics of the runs."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    with _progress() as progress:
        progress(0, 2, "Loss against a[/b]\x1b[7m")
    assert r"against a[/b]\x1b[7m" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["device_rounds.parquet", "spans.parquet", "rounds.csv"])
def test_a_cut_table_is_one_sentence_and_writes_nothing(run, tmp_path, name):
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: len(content) // 2])
    result = CliRunner().invoke(app, ["report", str(run), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert str(run) in result.stderr and not (tmp_path / "out").exists()


def test_a_damaged_run_is_named_also_beside_a_figure_of_a_metric(write_run, tmp_path):
    folder = write_run(tmp_path / "runs")
    with (folder / "rounds.csv").open("a") as table:
        table.write("1\n")
    result = CliRunner().invoke(app, ["report", str(folder), "figures=top3"])
    assert result.exit_code == 2 and "rounds.csv is damaged" in result.output
    result = CliRunner().invoke(app, ["report", str(tmp_path / "nowhere"), "figures=top3"])
    assert result.exit_code == 2 and "nowhere is not a folder" in result.output


def test_an_option_may_be_longer_than_the_name_of_a_file(run):
    """A folder may be named like one, and names of files end at 255 bytes."""
    named = ", ".join(f"scheme {i}: A display name of scheme {i}" for i in range(9))
    result = CliRunner().invoke(app, ["report", str(run), f"schemes={{{named}}}"])
    sentence = 'command line: schemes names "scheme 0", which these results do not have; there are'
    assert (result.exit_code, result.stderr) == (2, f"{sentence} joint.\n")

"""A report is there as a whole or not at all, and whatever stops it is said in one sentence."""

import resource

import pandas as pd
import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from reports import html_page as page
from reports.html_page import write_report
from reports.report_folder import replaced_folder
from reports.run_data.finished_run import load_run
from reports.run_data.run_files import ReportError


@pytest.fixture
def one_figure(monkeypatch):
    """Reports with the figure of the latencies only: what is tested here is the folder."""
    every = page.report_figures
    monkeypatch.setattr(
        page, "report_figures", lambda schemes: [p for p in every(schemes) if p.name == "cdf"]
    )


@pytest.fixture
def run(tmp_path, write_run):
    return write_run(tmp_path / "runs" / "a")


def test_an_earlier_report_is_replaced_as_a_whole(one_figure, run, tmp_path):
    out = tmp_path / "deep" / "out"
    write_report([run], out)
    (out / "figures" / "old.pdf").write_text("from an earlier report")
    write_report([run], out, "ieee")
    assert sorted(path.name for path in (out / "figures").iterdir()) == [
        "cdf.csv",
        "cdf.pdf",
        "cdf.png",
        "cdf.svg",
    ]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


@pytest.mark.parametrize("name", ["notes.txt", "index.html", "figures"])
def test_what_is_no_report_is_never_replaced(one_figure, run, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("<title>mine</title>")
    with pytest.raises(ReportError, match=r"holds .* give --out a new folder"):
        write_report([run], out)
    assert (out / name).read_text() == "<title>mine</title>" and len(list(tmp_path.iterdir())) == 2


def test_a_failure_leaves_the_earlier_report_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    with replaced_folder(out) as new:
        (new / "index.html").write_text("<title>edgesim: first</title>")
    with pytest.raises(ReportError, match="No space left on device"), replaced_folder(out) as new:
        (new / "index.html").write_text("half")
        raise OSError(28, "No space left on device")
    with pytest.raises(KeyboardInterrupt), replaced_folder(out) as new:
        raise KeyboardInterrupt
    assert (out / "index.html").read_text() == "<title>edgesim: first</title>"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_made_for_a_report_that_failed_are_taken_back(tmp_path):
    with pytest.raises(ReportError), replaced_folder(tmp_path / "a" / "b" / "out"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_may_not_grow_stops_the_report_in_one_sentence(one_figure, run, tmp_path):
    """What a full disk does, done by the system: no file may exceed 20 kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        result = CliRunner().invoke(app, ["report", str(run), "--out", str(tmp_path / "out")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1
    assert "The report cannot be written to" in result.stderr and "File too large" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_place_that_cannot_be_written(run):
    with pytest.raises(ReportError, match="The report cannot be written to /proc/report"):
        write_report([run], "/proc/report")


def test_the_command_line_takes_the_style(one_figure, run, tmp_path):
    result = CliRunner().invoke(
        app, ["report", str(run), "--out", str(tmp_path / "out"), "--style", "ieee"]
    )
    assert result.exit_code == 0 and result.stdout == f"report: {tmp_path / 'out' / 'index.html'}\n"
    assert 'width="252pt"' in (tmp_path / "out" / "figures" / "cdf.svg").read_text()  # 3.5 in
    assert CliRunner().invoke(app, ["report", str(run), "--style", "nature"]).exit_code == 2


def test_an_unknown_style(run, tmp_path):
    with pytest.raises(ReportError, match='style "nature" is unknown; there are screen and ieee'):
        write_report([run], tmp_path / "out", "nature")


def test_a_run_of_another_version_says_which_columns_it_lacks(run):
    pd.read_csv(run / "rounds.csv").drop(columns=["solver_residual", "loss"]).to_csv(
        run / "rounds.csv", index=False
    )
    with pytest.raises(ReportError) as error:
        load_run(run)
    assert str(error.value) == (
        f"The table rounds in {run} lacks the columns loss, solver_residual; "
        "another version wrote it (git abc): run its scenario again."
    )


def test_a_table_with_words_for_numbers_is_damaged(run):
    spans = pd.read_parquet(run / "spans.parquet")
    spans.assign(end_s="soon").to_parquet(run / "spans.parquet")
    with pytest.raises(
        ReportError, match=r"table spans in .* is damaged: its column end_s holds no numbers"
    ):
        load_run(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", '"x"'),
        ("targets", "3"),
        ("rounds", "null"),
        ("targets", '{"0.x": null}'),
        ("latency_threshold_s", "[]"),
    ],
)
def test_a_damaged_summary_is_said(run, key, value):
    import json

    summary = json.loads((run / "summary.json").read_text()) | {key: json.loads(value)}
    (run / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(ReportError, match=rf"summary.json is damaged: {key} is"):
        load_run(run)


@pytest.mark.parametrize("name", ["device_rounds.parquet", "spans.parquet", "rounds.csv"])
def test_a_cut_table_is_one_sentence_and_writes_nothing(run, tmp_path, name):
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: len(content) // 2])
    result = CliRunner().invoke(app, ["report", str(run), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert str(run) in result.stderr and not (tmp_path / "out").exists()

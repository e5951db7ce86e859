"""`edgesim report` on the command line."""

import resource

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app


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


@pytest.mark.parametrize("name", ["device_rounds.parquet", "spans.parquet", "rounds.csv"])
def test_a_cut_table_is_one_sentence_and_writes_nothing(run, tmp_path, name):
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: len(content) // 2])
    result = CliRunner().invoke(app, ["report", str(run), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert str(run) in result.stderr and not (tmp_path / "out").exists()

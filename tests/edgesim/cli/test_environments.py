"""Commands on a machine that is full, closed, read-only, or set up in an unusual way."""

import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.records.checkpoint.run_checkpoint import RunFolder
from tests.conftest import TIMED

ROOT = Path(__file__).parents[3]
RUN = ["run", "timed.yaml", "--quiet", "--out", "r"]
BIG = "File too large"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "timed.yaml").write_text(TIMED)
    return tmp_path


def refused(*arguments):
    """The one sentence of a command that exits with 2."""
    result = CliRunner().invoke(app, list(arguments))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    return result.stderr


def files(path):
    found = [each for each in path.rglob("*") if each.is_file() and each.name != "timing.json"]
    return {str(each.relative_to(path)): each.read_bytes() for each in found}


def prints_to(stream, arguments, monkeypatch):
    """Exit code of a command whose output goes to this stream."""
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(SystemExit) as end:
        app(args=arguments)
    return end.value.code


COMMANDS = [
    ["schema"],
    ["list", "methods"],
    ["explain"],
    ["check", "timed.yaml"],
    ["run", "--help"],
    ["run", "timed.yaml", "--out", "r"],
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_output_device_is_one_sentence(folder, arguments, monkeypatch, capfd):
    with open("/dev/full", "w") as full:
        assert prints_to(full, arguments, monkeypatch) == 2
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_closed_pipe_ends_a_command_without_a_word(folder, arguments, monkeypatch, capfd):
    reader, writer = os.pipe()
    os.close(reader)
    codes = []
    with suppress(BrokenPipeError), os.fdopen(writer, "w") as pipe:  # closing it fails once more
        codes.append(prints_to(pipe, arguments, monkeypatch))
    assert codes == [1] and capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_closed_stream_leads_nowhere(folder, stream):
    command = f'"{sys.executable}" -m edgesim list solvers {stream}>&-'
    shell = {"shell": True, "capture_output": True, "text": True, "check": True}
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, **shell)
    assert done.stderr == "" and ("kkt" in done.stdout) == (stream == "2")


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": "/dev/null"}
TURKISH = {"LC_ALL": "tr_TR.UTF-8"}  # where i and I are no pair
ONE_AFTER_THE_OTHER = """
import sys
from edgesim.cli import main
for command in {commands}:
    sys.argv = ["edgesim", *command]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.mark.slow
@pytest.mark.parametrize("environment", [ASCII, TURKISH], ids=["ascii-without-home", "turkish"])
def test_a_locale_and_a_missing_home_change_no_byte(folder, environment):
    assert CliRunner().invoke(app, [*RUN[:-1], "usual"]).exit_code == 0
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "a.yaml").write_text("# Größe\n", encoding="utf-8")
    commands = [RUN, ["explain"], ["list", "scenarios"], ["compare", "r", "usual"]]
    if environment is ASCII:
        commands.append(["report", "r", "figures=latency", "--out", "page"])
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER.format(commands=commands)],
        env={**environment, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert files(folder / "r") == files(folder / "usual")


@pytest.mark.parametrize(
    "out",
    ["x" * 300, "x/" * 2100, "/proc/self/x", "timed.yaml/x", "timed.yaml", "."],
    ids=["long-name", "long-path", "read-only", "below-a-file", "a-file", "not-ours"],
)
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_folder_that_cannot_be_used(folder, out, command):
    values = ["seed=1,2"] if command == "sweep" else []
    sentence = refused(command, "timed.yaml", *values, "--out", out)
    assert len(sentence) < 200
    assert [path.name for path in folder.iterdir()] == ["timed.yaml"]


@pytest.mark.parametrize("command", [["report"], ["compare", "timed.yaml"]])
def test_a_name_that_is_too_long_is_one_sentence(folder, command):
    assert len(refused(*command, "x" * 300)) < 200


@pytest.mark.parametrize("name", ["summary.json.new", "rounds.csv.new", "summary.json"])
def test_a_folder_where_a_file_should_be(folder, name):
    (folder / "r" / name / "x").mkdir(parents=True)
    assert name in refused(*RUN)
    (folder / "r" / name / "x").rmdir()
    (folder / "r" / name).rmdir()
    assert CliRunner().invoke(app, RUN).exit_code == 0


def test_two_runs_in_one_folder(folder):
    """The second is refused while the first is there, also with --fresh, and harms nothing."""
    assert CliRunner().invoke(app, RUN).exit_code == 0
    before, first = files(folder / "r"), RunFolder(folder / "r", "of another command")
    first._acquire_lock()
    for more in ([], ["--fresh"]):
        assert "another process is running in r" in refused(*RUN, "seed=3", *more)
    first.close()
    assert files(folder / "r") == before


@pytest.mark.slow
def test_a_full_disk_at_any_write_of_a_run(folder):
    """No file may grow beyond so many bytes; then there is room again."""
    assert CliRunner().invoke(app, [*RUN[:-1], "undisturbed"]).exit_code == 0
    undisturbed = files(folder / "undisturbed")
    for size in sorted({len(content) for content in undisturbed.values()})[:-1]:
        assert full_at(size)  # the log, which is the largest, fails first
    assert CliRunner().invoke(app, RUN).exit_code == 0
    rest = {name: len(undisturbed[name]) for name in undisturbed if "checkpoint" not in name}
    for size in sorted(set(rest.values()))[:-1]:
        for name in rest:  # the rounds are done, and all other files are written again
            (folder / "r" / name).unlink(missing_ok=True)
        assert full_at(size)
    assert CliRunner().invoke(app, RUN).exit_code == 0
    assert files(folder / "r") == undisturbed


def full_at(size):
    """Is a run in one sentence refused where no file may be larger?"""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]))
    try:
        result = CliRunner().invoke(app, RUN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    return result.exit_code == 2 and result.stderr.count("\n") == 1 and BIG in result.stderr


@pytest.mark.slow
def test_a_full_disk_leaves_the_report_that_was_there(folder):
    assert CliRunner().invoke(app, RUN).exit_code == 0
    report = ["report", "r", "figures=latency", "--out", "page"]
    assert CliRunner().invoke(app, report).exit_code == 0
    before, unlimited = files(folder / "page"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, unlimited[1]))
    try:
        assert "File too large" in refused(*report)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert files(folder / "page") == before
    assert sorted(path.name for path in folder.iterdir()) == ["page", "r", "timed.yaml"]

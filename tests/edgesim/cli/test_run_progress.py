"""What `edgesim run` prints of a finished run whose folder is of unknown origin."""

import hashlib
import json

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from tests.conftest import TIMED


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """kept(content) -> the result of the command over a finished run with this summary.json."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "timed.yaml").write_text(TIMED)
    words = ["run", "timed.yaml", "--out", "r"]
    assert CliRunner().invoke(app, words).exit_code == 0
    path, sums = tmp_path / "r" / "summary.json", tmp_path / "r" / "SHA256SUMS"

    def printed(change):
        before = path.read_bytes()
        path.write_text(json.dumps(change(json.loads(before))))
        digests = [hashlib.sha256(each).hexdigest() for each in (before, path.read_bytes())]
        sums.write_text(sums.read_text().replace(*digests))
        return CliRunner().invoke(app, words)

    return printed


def test_a_summary_that_no_run_writes_is_one_sentence(kept):
    result = kept(lambda summary: [])
    assert result.exit_code == 2, result.output
    assert result.stderr == "r/summary.json holds no JSON object.\n"


def test_a_terminal_obeys_nothing_in_it(kept):
    name = "\x1b[31mred\x07"
    result = kept(lambda summary: summary | {"scheme": name, "scenario": name})
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout and "\x07" not in result.stdout
    assert result.stdout.count(r"\x1b[31mred\x07") == 2

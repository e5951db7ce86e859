"""Scenario files, good and bad, and the one sentence that a command says about a bad one."""

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app

TEXT = """\
name: cell
rounds: 3
network:
  bandwidth: 200 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
  - count: 3
    tx_power: {choice: [20 dBm, 23 dBm]}
    cpu: {frequency: {uniform: [1 GHz, 2 GHz]}, flops_per_cycle: [1, 2, 4]}
budget: {latency_threshold: 25 ms}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 2}
  model: mlp
  batch_size: 20
  method: {name: liu, personal_steps: 5, global_lr: 0.01}
"""


SCHEMES = """\
schemes:
  joint: {}
  equal bandwidth:
    allocation.solver: equal
    rounds: 7
  fedavg:
    learning:
      method: {name: fedavg, lr: 0.1}
  longer:
    learning: {method: {personal_steps: 9}}
"""


@pytest.fixture
def path(tmp_path):
    """A scenario with two classes of devices."""
    file = tmp_path / "cell.yaml"
    file.write_text(TEXT)
    return file


@pytest.fixture(scope="session")
def text():
    return TEXT


@pytest.fixture(scope="session")
def schemes():
    """The schemes of a file, to be added to a scenario."""
    return SCHEMES


GOOD = """\
name: cell
rounds: 3
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning: {dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, \
method: {name: fedavg}}
"""


@pytest.fixture
def good(tmp_path, monkeypatch):
    """The text of good.yaml, which lies in the current folder beside a bad trace."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("3 GHz\nfast\n")
    (tmp_path / "good.yaml").write_text(GOOD)
    return GOOD


@pytest.fixture
def sentence_of():
    """The one line that a command ends with: exit code 2, nothing on stdout."""

    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        (line,) = result.stderr.splitlines()
        assert not any(word in line for word in ("Traceback", "Input should", "pydantic"))
        return line

    return invoke


@pytest.fixture
def sentence_of_file(good, sentence_of, tmp_path):
    """The one line about a file bad.yaml of this content; nothing is written beside it."""

    def check(content):
        (tmp_path / "bad.yaml").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        before = sorted(tmp_path.iterdir())
        line = sentence_of("run", "bad.yaml")
        assert line.startswith("bad.yaml:") and len(line) < 300
        assert sorted(tmp_path.iterdir()) == before
        return line

    return check


@pytest.fixture
def sentence_of_edit(good, sentence_of_file):
    """The one line about good.yaml with one text replaced by another, "" stands for its end."""

    def check(old, new):
        assert old in good
        return sentence_of_file(good.replace(old, new) if old else good + new)

    return check

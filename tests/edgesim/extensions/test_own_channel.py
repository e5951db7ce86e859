"""Path loss from code and from traces, in runs, and one sentence per mistake."""

import math

import pytest

from edgesim import load_run
from edgesim.errors import EdgesimError
from edgesim.runs.run import simulate
from edgesim.scenario.loader import load

TEXT = """\
name: tiny
rounds: 3
network:
  bandwidth: 1 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices: [{count: 2, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
CODE = """\
import numpy as np

def same(fleet, streams):
    return np.full(len(fleet), 100.0)

def by_distance(fleet, streams):
    return 38.5 + 30 * np.log10(fleet.distance_m)

class Steps:
    '''100 dB in even seconds, 110 dB in odd ones.'''
    def __init__(self, fleet, streams):
        self.devices = len(fleet)

    def loss_db(self, time_s):
        return np.full(self.devices, 100.0 + 10.0 * (int(time_s) % 2))

    def next_change_s(self, time_s):
        return int(time_s) + 1.0

class Stuck(Steps):
    def next_change_s(self, time_s):
        return time_s

class Never(Steps):
    def next_change_s(self, time_s):
        return None

class Breaks(Steps):
    def loss_db(self, time_s):
        return super().loss_db(time_s) if time_s < 0.01 else 1 / 0

    def next_change_s(self, time_s):
        return time_s + 0.01

class Gains(Steps):
    def loss_db(self, time_s):
        return [100.0, -40.0]

def gains(fleet, streams):
    return np.full(len(fleet), -100.0)

def complex_numbers(fleet, streams):
    return np.full(len(fleet), 100j)

def short(fleet, streams):
    return [100.0]

def broken(fleet, streams):
    return 1 / 0

def lonely(fleet):
    return 100.0

class Lonely:
    def __init__(self, fleet):
        pass

class Half:
    def __init__(self, fleet, streams):
        self.loss_db = abs

class Timeless(Steps):
    def loss_db(self):
        return np.full(self.devices, 100.0)

def linear(fleet, streams):
    return [np.inf, 1e-10]

class Linear(Steps):
    def loss_db(self, time_s):
        return [0.0, 2e-9]

def none(fleet, streams):
    return [0.0, 0.0]
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "radio.py").write_text(CODE)
    (tmp_path / "tiny.yaml").write_text(TEXT)

    def start(channel=None, *overrides, out=None):
        changes = [f"network.channel={channel}"] if channel else []
        scenario = load(tmp_path / "tiny.yaml", [*changes, *overrides])
        return simulate(scenario, allow_code=True, out=out)

    start.folder = tmp_path
    return start


def test_the_same_losses_give_the_same_run(run):
    expected = run().device_rounds
    assert run("./radio.py:same").device_rounds.equals(expected)
    (run.folder / "even.csv").write_text("t [s],0 [dB],1 [dB]\n0,100,100\n")
    assert run("{trace: even.csv}").device_rounds.equals(expected)
    more = "shadowing: 8 dB, fading: {kind: rayleigh, coherence: 1 s}"
    fading = f"{{path_loss: {{model: constant, loss: 100 dB}}, {more}}}"
    own = fading.replace("{model: constant, loss: 100 dB}", "{model: code, code: ./radio.py:same}")
    assert run(own).device_rounds.equals(run(fading).device_rounds)


def test_no_loss_at_all_is_taken(run):
    expected = run("{path_loss: {model: constant, loss: 0 dB}}")
    assert run("./radio.py:none").rounds.equals(expected.rounds)


def test_a_path_loss_by_distance(run):
    formula = "{path_loss: {model: log-distance, reference_loss: 38.5 dB, exponent: 3}}"
    place = "devices.0.distance={uniform: [50 m, 90 m]}"
    assert run("./radio.py:by_distance", place).rounds.equals(run(formula, place).rounds)


def test_bits_are_carried_at_the_measured_rates(run):
    """An upload of 154 kbit, at half of what the whole band carries, over two changes."""
    (run.folder / "rates.csv").write_text(
        "t [s],0 [kbit/s],1 [kbit/s]\n0,100,200\n0.5,0,100\n1,200,100\n"
    )
    spans = run("{trace: rates.csv, end: hold}", "rounds=1").spans.set_index(["phase", "device"])
    start_s, bits = spans.start_s["upload"], spans.bits["upload"]
    for k, rates in ((0, (1e5, 0.0, 2e5)), (1, (2e5, 1e5, 1e5))):
        first, second = 0.5 * rates[0] * (0.5 - start_s[k]), 0.5 * rates[1] * 0.5
        end_s = 1.0 + (bits[k] - first - second) / (0.5 * rates[2])
        assert spans.end_s["upload", k] == pytest.approx(end_s, rel=1e-12)


@pytest.mark.slow
def test_code_over_time_resumes_and_is_kept_with_the_run(run):
    done = run("./radio.py:Steps", out=run.folder / "r")
    assert done.rounds.latency_s.nunique() > 1  # the losses changed between the rounds
    assert (run.folder / "r" / "radio.py").read_text() == CODE
    again = simulate(load(run.folder / "r" / "scenario.yaml"), allow_code=True)
    assert again.rounds.equals(done.rounds)
    (run.folder / "t.csv").write_text("t [s],0 [dB],1 [dB]\n0,100,100\n")
    run("{trace: t.csv}", out=run.folder / "t")
    assert (run.folder / "t" / "t.csv").exists()
    (run.folder / "t.csv").write_text("t [s],0 [dB],1 [dB]\n0,101,100\n")
    with pytest.raises(EdgesimError, match="another run"):
        run("{trace: t.csv}", out=run.folder / "t")


@pytest.mark.parametrize(
    ("channel", "sentence"),
    [
        ("./radio.py:short", "gave an array [1]; give one path loss per device, [2]"),
        ("./radio.py:broken", "radio.py:49: ZeroDivisionError: division by zero"),
        ("./radio.py:Stuck", "channel is ./radio.py:Stuck, whose next_change_s(0"),
        ("./radio.py:Never", "next_change_s(0) gave None; it must be later than"),
        ("./radio.py:Breaks", "radio.py:30: ZeroDivisionError: division by zero"),
        (
            "./radio.py:gains",
            "is ./radio.py:gains, which gave -100 dB for device 0; a path loss is from "
            "0 to 1000 dB, or inf where there is no connection; it seems to be a gain, whose sign "
            "is the other one",
        ),
        (
            "./radio.py:Gains",
            "command line: network.channel is ./radio.py:Gains, whose loss_db(0) gave -40 dB for "
            "device 1; a path loss is from 0",
        ),
        (
            "./radio.py:linear",
            "is ./radio.py:linear, which gave 1e-10 dB at most; these seem to be linear gains, "
            "whose losses are -10 log10 of them",
        ),
        ("./radio.py:Linear", "is ./radio.py:Linear, whose loss_db(0) gave 2e-09 dB at most"),
        ("./radio.py:Half", "is ./radio.py:Half, which gave Half without next_change_s(time_s)"),
        ("./radio.py:lonely", "radio.py:51: TypeError: lonely() takes 1 positional argument but 2"),
        ("./radio.py:Lonely", "radio.py:55: TypeError: Lonely.__init__() takes 2 positional"),
        ("./radio.py:Timeless", "radio.py:63: TypeError: Timeless.loss_db() takes 1 positional"),
        ("./radio.py:complex_numbers", "gave values that are complex128; give 2 numbers, dB"),
        ("./radio.py:gone", "but radio.py defines no gone"),
        ("radio", "network.channel is radio"),
        (
            "{trace: gone.csv}",
            "network.channel.trace is gone.csv, which cannot be read (No such file or directory); "
            "a path is relative to the scenario",
        ),
        ("{trace: gone.csv, end: stop}", 'network.channel.end="stop"; allowed is repeat or hold'),
        ("{trace: [a.csv]}", "network.channel.trace=a list; write the path of a CSV file"),
        ("{trace: gone.csv, file: b.csv}", "the key network.channel.file is unknown"),
        ("{path_loss: {model: trace, file: a.csv}}", "network.channel.path_loss.file is a.csv"),
        ("17", "write {path_loss: {model: constant, loss: 100 dB}}, ./file.py:function or {trace:"),
    ],
)
def test_mistakes(run, channel, sentence):
    with pytest.raises(EdgesimError) as problem:
        run(channel)
    assert sentence in str(problem.value) and "\n" not in str(problem.value)


def test_a_device_without_a_connection_is_reported(run, tmp_path):
    (run.folder / "out.csv").write_text("t [s],0 [dB],1 [dB]\n0,100,inf\n")
    run("{trace: out.csv}", out=tmp_path / "out")
    assert load_run(tmp_path / "out").devices.path_gain_db.tolist() == [-100.0, -math.inf]


def test_what_does_not_fit_together(run):
    (run.folder / "r.csv").write_text("t [s],0 [Mbit/s],1 [Mbit/s]\n0,1,1\n")
    with pytest.raises(EdgesimError, match="in which fading and shadowing are contained"):
        run("{trace: r.csv, shadowing: 8 dB}")
    with pytest.raises(EdgesimError, match="distance is not read with path_loss model trace"):
        run("{trace: r.csv}", "devices.0.distance=100 m")
    with pytest.raises(EdgesimError, match=r"allocation\.rate is mean, which needs a distribution"):
        run("{trace: r.csv}", "allocation.rate=mean")

"""`learning.selection`: by name, from a file of the user's, and one sentence per mistake."""

from functools import partial

import numpy as np
import pytest

from edgesim.errors import EdgesimError, ScenarioError
from edgesim.runs.run import simulate
from edgesim.scenario.loader import load

TEXT = """\
name: tiny
rounds: 2
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [110 dB, 90 dB, 100 dB]}}
devices: [{count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}]
learning:
  {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg, participants: 1}}
allocation: {solver: equal}
"""
OWN = """\
def last(view, count, stream):
    return view.idle[-count:]

def absent(view, count, stream):
    return [7]

def twice(view, count, stream):
    return [1, 1]

def sampled(view, count, stream):
    return [*view.idle[:1], *view.idle[:1]]

def mask(view, count, stream):
    import numpy

    return numpy.array([False, True])

def words(view, count, stream):
    return ["1"]

def complex_numbers(view, count, stream):
    return view.idle[:count] + 1j

def hidden(view, count, stream):
    import numpy

    return numpy.ma.masked_array(view.idle[:count], mask=True)

def greedy(view, count, stream):
    view.rate_bps[0] = 1e12
    return [0]

def nobody(view, count, stream):
    return []

def odd(view, count, stream):
    return "nobody"

def ragged(view, count, stream):
    return [[1], [1, 2]]

def huge(view, count, stream):
    return [10**400]

def unwritable(view, count, stream):
    return [10**5000]

def of_numpy(view, count, stream):
    import numpy

    return numpy.random.permutation(view.idle)[:count]

def of_python(view, count, stream):
    import random

    return random.sample(view.idle.tolist(), count)

def of_torch(view, count, stream):
    import torch

    return view.idle[torch.randperm(len(view.idle)).numpy()][:count]

def shuffled(view, count, stream):
    import numpy

    return numpy.random.default_rng(view.g).permutation(view.idle)[:count]
"""


@pytest.fixture
def chosen(tmp_path):
    (tmp_path / "select.py").write_text(OWN)
    (tmp_path / "tiny.yaml").write_text(TEXT)

    def run(selection, *overrides):
        changes = [f"learning.selection={selection}", *overrides]
        table = simulate(load(tmp_path / "tiny.yaml", changes), allow_code=True).device_rounds
        return [group.device.tolist() for _, group in table.groupby("round")]

    return run


def test_by_name(chosen):
    assert chosen("best-channel") == [[1], [1]]
    assert chosen("round-robin") == [[0], [1]]
    assert chosen("all", "learning.method={name: fedavg}") == [[0, 1, 2]] * 2
    assert chosen(
        "best-channel",
        "learning.method={name: liu, participants: 2}",
        "budget.latency_threshold=1s",
    ) == [[1, 2], [1, 2]]


def test_prunefl_leaves_the_choice_open_unless_one_device_begins_alone(chosen):
    trained = "learning.dataset=digits", "learning.partition={kind: iid}"
    asked = "learning.method={name: prunefl, participants: 1}"
    assert chosen("round-robin", *trained, asked) == [[0], [1]]
    assert chosen("age", *trained, asked) == [[0], [1]]
    with pytest.raises(ScenarioError) as problem:
        chosen("round-robin", *trained, asked.replace("1}", "1, rounds_alone: 1}"))
    assert "is round-robin, which prunefl does not read" in str(problem.value)


@pytest.mark.parametrize("clock", ["buffered, buffer: 3", "asynchronous"])
def test_turns_move_on_by_jobs_where_they_overlap(tmp_path, clock):
    """4 of 20 unequal devices at work: the first 20 jobs are of 20 devices."""
    (tmp_path / "tiny.yaml").write_text(TEXT)
    one = "tx_power: 28 dBm, cpu: {frequency: {uniform: [1 GHz, 9 GHz]}, cycles_per_weight: 50}"
    changes = (
        "network.channel.path_loss.loss=100 dB",
        f"devices=[{{count: 20, {one}}}]",
        "learning.method={name: fedavg}",
        "budget.latency_threshold=1 s",
        "learning.selection=round-robin",
        f"clock={{mode: {clock}, in_flight: 4}}",
        "rounds=30",
    )
    jobs = simulate(load(tmp_path / "tiny.yaml", list(changes))).device_rounds
    first = jobs.sort_values("job").device[:20]
    assert sorted(first) == list(range(20))


def test_from_a_file(chosen):
    assert chosen("./select.py:last") == [[2], [2]]
    assert chosen("./select.py:shuffled") == chosen("./select.py:shuffled")


def test_numpy_may_have_another_generator(chosen, request):
    request.addfinalizer(partial(np.random.set_bit_generator, np.random.get_bit_generator()))
    np.random.set_bit_generator(np.random.Philox(0))
    assert chosen("./select.py:last") == [[2], [2]]
    with pytest.raises(ScenarioError, match="which draws random numbers of numpy, torch or"):
        chosen("./select.py:of_numpy")


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        ("best", "is best; allowed are uniform, all, best-channel, round-robin, power-of-choice"),
        ("./select.py:absent", "which chose [7] in round 0; choose among the devices of view.idle"),
        ("./select.py:twice", "which chose [1, 1] in round 0; choose at most 1 device, each once"),
        ("./select.py:sampled", "which chose [0, 0] in round 0; choose at most 1 device, each"),
        ("./select.py:mask", "which chose [False  True] in round 0; choose among the devices"),
        ("./select.py:words", "which chose ['1'] in round 0; choose among the devices"),
        ("./select.py:complex_numbers", "which chose [0.+1.j] in round 0; choose among the"),
        ("./select.py:hidden", "which chose [--] in round 0; choose among the devices"),
        ("./select.py:odd", "which chose nobody in round 0; choose among"),
        ("./select.py:ragged", "which chose [[1], [1, 2]] in round 0; choose among"),
        ("./select.py:huge", "which chose [1000000000"),
        ("./select.py:unwritable", "which chose numbers of thousands of digits in round 0; choose"),
        (
            "./select.py:of_numpy",
            "is ./select.py:of_numpy, which draws random numbers of numpy, torch or",
        ),
        ("./select.py:of_torch", "which draws random numbers of numpy, torch or Python's random"),
        ("./select.py:of_python", "do not follow from the seed of a run; draw those of its stream"),
        ("./select.py:gone", "but select.py defines no gone"),
        ("all", "learning.method.participants is 1, which the selection all does not read"),
    ],
)
def test_mistakes(chosen, selection, sentence):
    with pytest.raises(ScenarioError) as problem:
        chosen(selection)
    assert sentence in str(problem.value) and "\n" not in str(problem.value)


def test_a_rule_that_asks_nobody_needs_a_threshold(chosen):
    with pytest.raises(EdgesimError, match="round 0, or the selection asks none, and no latency"):
        chosen("./select.py:nobody")


def test_a_rule_cannot_change_what_the_server_knows(chosen):
    with pytest.raises(EdgesimError, match=r"greedy.*read-only"):
        chosen("./select.py:greedy")


def test_methods_that_select_themselves_read_no_rule(chosen):
    with pytest.raises(ScenarioError, match="best-channel, which oort does not read"):
        chosen(
            "best-channel",
            "learning.method={name: oort, participants: 1}",
            "learning.dataset=digits",
            "learning.partition={kind: iid}",
        )


@pytest.mark.parametrize("clock", ["synchronous", "overcommit", "asynchronous"])
def test_more_participants_than_devices_are_refused_with_file_and_line(tmp_path, clock):
    path = tmp_path / "tiny.yaml"
    path.write_text(TEXT.replace("participants: 1", "participants: 4"))
    with pytest.raises(ScenarioError) as refused:
        simulate(load(path, [f"clock.mode={clock}"]))
    assert str(refused.value) == (
        f"{path}:9: learning.method.participants is 4, but the cell has 3 devices; write at most "
        "as many, or none"
    )


def test_as_many_participants_as_devices_are_all(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TEXT.replace("participants: 1", "participants: 3"))
    assert simulate(load(path)).rounds["selected"].tolist() == [3, 3]

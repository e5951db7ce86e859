"""CPU times of a round and of an evaluation: every step and every tested sample is counted."""

import pytest

from edgesim.runs.run import prepare
from edgesim.scenario.loader import load
from edgesim.sweep import timed_round

FEDMAP = "{name: fedmap, participants: 2, local_steps: 3, lr: 0.05, phase_rounds: 1}"
LIU = "{name: liu, personal_steps: 5, global_steps: 2, warmup_steps: 1, personal_lr: 0.1, "
LIU += "global_lr: 0.1}"


@pytest.fixture
def one_second_each(monkeypatch):
    """Every training step and every tested sample takes 1 s."""

    def timed(work, given):
        result = work(given)
        if work is list:
            return sum(values.shape[1] for _, values in result), result
        return timed_round.steps(given), result

    monkeypatch.setattr(timed_round, "timed", timed)


@pytest.fixture
def setup_of(tiny):
    return lambda *changes: prepare(load(tiny, changes)).setup


@pytest.mark.parametrize(
    ("changes", "steps", "probes"),
    [
        (["learning.method={name: fedavg, local_steps: 7, lr: 0.1}"], 4 * 7, 0),
        (["learning.method={name: fedavg, participants: 3, local_steps: 7, lr: 0.1}"], 3 * 7, 0),
        ([f"learning.method={LIU}"], 4 * 8, 0),
        # two sizes, each as TopK and as a draw
        ([f"learning.method={FEDMAP}", "devices.0.model_budget=[1, 1, 0.25, 0.25]"], 2 * 3, 4),
        (["clock={mode: buffered, buffer: 2}"], 2 * 5, 0),
        # a mask phase of no steps comes first
        ([f"learning.method={FEDMAP[:-1]}, mask_steps: 0}}"], 0, 2),
    ],
    ids=["all", "participants", "phases", "probes", "buffer", "no steps"],
)
def test_all_steps_of_a_round_and_all_tests_are_counted(
    one_second_each, setup_of, changes, steps, probes
):
    setup = setup_of("learning.method={name: fedavg, local_steps: 5, lr: 0.1}", *changes)
    times = timed_round.timed_round(setup)
    data = setup.task.data
    tested = sum(map(len, data.test_index)) + probes * len(data.y_test)
    assert times == timed_round.RoundTimes(steps, tested)


def test_validation_samples_are_tested_too(one_second_each, setup_of):
    setup = setup_of("learning.validation=0.2")
    data = setup.task.data
    tested = sum(map(len, (*data.test_index, *data.validation_index)))
    assert timed_round.timed_round(setup).evaluation_s == tested > sum(map(len, data.test_index))


def test_a_clock_that_stands_still_for_a_step_divides_by_nothing(setup_of, monkeypatch):
    """As that of a system which counts CPU time in ticks."""
    monkeypatch.setattr(timed_round, "process_time", lambda: 1.0)
    times = timed_round.timed_round(setup_of("learning.method={name: fedavg, lr: 0.1}"))
    assert 0 < times.training_s < 0.1 and 0 < times.evaluation_s < 0.1


def test_a_scenario_that_only_counts_takes_no_training(setup_of):
    only_counts = setup_of("learning.dataset=none", "learning.partition=none")
    assert timed_round.timed_round(only_counts) == timed_round.RoundTimes()

"""Devices that leave out the steps for which the threshold leaves no time."""

from __future__ import annotations

import pytest

from edgesim import simulate
from edgesim.errors import EdgesimError
from edgesim.runs.setup import set_up
from fl.contracts import Job, Payload, Phase, Stage, Work
from fl.errors import LearningError
from fl.training.partial_work import steps_in_time, with_steps


@pytest.fixture
def scenario(three):
    return lambda *changes: three("clock={mode: deadline, partial: planned}", *changes)


def test_sixteen_steps_fit_into_what_download_and_upload_leave():
    """T_th 1 s, down 0.2 s, up 0.15 s, 0.04 s a step: 16.25."""
    assert steps_in_time(1.0 - 0.2 - 0.15, 0.04) == 16
    assert steps_in_time(0.4, 0.1) == 4 and steps_in_time(0.09, 0.1) == 0
    assert steps_in_time(-1.0, 0.1) == 0


def test_all_steps_are_the_same_job_and_fewer_cost_their_part():
    phases = Phase(0, 1, 3, 0.1), Phase(0, 1, 8, 0.1, submodel=tuple(range(8)))
    stages = Stage("personal", Work(1.0, 2.0)), Stage("global", Work(8.0, 16.0))
    job = Job(0, 0, phases, stages, Payload(0.0, 1.0), 0.0)
    assert with_steps(job, 8) is job
    part = with_steps(job, 2)
    assert part.phases[0] is phases[0] and part.phases[1].steps == 2
    assert part.phases[1].submodel == (0, 1)
    assert part.stages == (stages[0], Stage("global", Work(2.0, 4.0)))


def test_a_slow_device_is_in_time_with_fewer_steps(scenario):
    """Device 0 makes all steps, device 1 some, device 2 cannot make one and is late."""
    run, whole = simulate(scenario()), simulate(scenario("clock.partial=none"))
    first, before = (each.device_rounds[each.device_rounds["round"] == 0] for each in (run, whole))
    assert before.status.tolist() == ["arrived", "late", "late"]
    assert first.status.tolist() == ["arrived", "arrived", "late"]
    step = before.cycles[0] / 8
    done = first.cycles[1] / step
    assert done == pytest.approx(round(done)) and 1 <= round(done) < 8
    assert first.finish_s[1] <= 0.040 < first.finish_s[1] + step / 5e6
    assert first.cycles[0] == before.cycles[0]


def test_fednova_leaves_out_who_makes_no_step(scenario):
    """tau_2 = 0: the mean is that of devices 0 and 1, as if device 2 had not been asked."""
    method = "{name: fednova, lr: 0.1, local_steps: 8, participants: %d}"
    rule = ["learning.selection=round-robin"]
    every, two = (
        simulate(scenario(f"learning.method={method % n}", *rule, "rounds=1")) for n in (3, 2)
    )
    assert every.device_rounds.status.tolist() == ["arrived", "arrived", "late"]
    assert two.device_rounds.status.tolist() == ["arrived", "arrived"]
    assert every.device_rounds.cycles[:2].tolist() == two.device_rounds.cycles.tolist()
    assert every.scores.loss.tolist() == two.scores.loss.tolist()


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fednova"])
def test_its_update_is_that_of_a_run_with_so_few_steps(scenario, method):
    """Device 1 alone: as with local_steps of what it has time for, bit for bit."""
    slow = "devices=[{count: 1, tx_power: 23 dBm, cpu: {frequency: 5 MHz, flops_per_cycle: 4}}]"
    own = f"learning.method={{name: {method}, lr: 0.1, local_steps: 8}}"
    run = simulate(scenario(slow, own))
    done = round(8 * run.device_rounds.cycles[0] / simulate(scenario(
        slow, own, "clock={mode: synchronous}", "rounds=1")).device_rounds.cycles[0])  # fmt: skip
    assert 1 <= done < 8
    fewer = simulate(scenario(slow, own, f"learning.method.local_steps={done}"))
    assert run.scores.loss.tolist() == fewer.scores.loss.tolist()
    assert run.rounds.time_s.tolist() == pytest.approx(fewer.rounds.time_s.tolist())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["learning.method={name: scaffold, lr: 0.1}"], "scaffold has no meaning for fewer steps"),
        (["clock.mode=synchronous"], "which reads no partial; remove it or write mode: deadline"),
        (
            ["learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}"],
            "with learning.dataset: none there are no steps to leave out",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_sentence(scenario, changes, said):
    with pytest.raises((EdgesimError, LearningError)) as refused:
        set_up(scenario(*changes))
    assert said in str(refused.value) and "\n" not in str(refused.value)

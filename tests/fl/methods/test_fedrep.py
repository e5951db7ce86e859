"""FedRep: head and body in turns."""

from dataclasses import replace

import pytest
import torch

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.data.datasets import load, spread
from fl.errors import MethodError
from fl.method_base.method import check
from fl.methods import resolve
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.conftest import Bench

LR = 0.05


def refused(name, **params):
    with pytest.raises(MethodError) as error:
        check(resolve(name), params)
    return str(error.value)


def fedlps_task():
    digits = spread(load("digits"), 2, Seeds(0), kind="labels", labels_per_device=3)
    return LearningTask(build("fedlps-cnn", (1, 28, 28), 10), digits, 20, Seeds(0))


def test_fedrep_trains_head_then_body_on_batches_that_go_on(bench):
    method = bench.method("fedrep", local_steps=5, lr=LR)
    (job,) = bench.jobs(method, method.start(), devices=[0])
    head = torch.from_numpy(method.personal())
    assert [(phase.steps, phase.first, phase.batches) for phase in job.phases] == [
        (2, 0, "train"),
        (3, 2, "train"),
    ]
    assert torch.equal(job.phases[0].mask, head) and torch.equal(job.phases[1].mask, ~head)
    passes = bench.method("fedrep", local_epochs=5)
    each = -(-int(bench.task.samples[0]) // 16)
    assert passes.turns(0) == (2 * each, 3 * each)


def test_the_head_of_fedrep_changes_at_every_participation(bench):
    method = bench.method("fedrep", lr=LR)
    head, state = torch.from_numpy(method.personal()), method.start()
    for _ in range(3):
        before = method.received(state, 0)
        state = bench.round(method, state)
        assert not torch.equal(state.local[0], before[head])


def test_a_step_of_fedrep_on_the_head_is_charged_no_gradient_below_it():
    method = Bench(fedlps_task()).method("fedrep", local_steps=5)
    head, body = method.stages(0, 0.0)
    assert head.work.weight_steps == 2 * 510 and body.work.weight_steps == 3 * 21_330
    macs = method.task.architecture.macs
    forward, last = 2 * sum(macs.values()), 2 * list(macs.values())[-1]
    assert head.work.flops == 2 * 20 * (forward + last)
    papers = Bench(replace(fedlps_task(), accounting=Accounting(backward="twice")))
    fedavg, (first, second) = (
        papers.method("fedavg").stages(0, 0.0)[0],
        papers.method("fedrep").stages(0, 0.0),
    )
    assert (
        first.work.flops + second.work.flops == fedavg.work.flops
    )  # the paper's rule: as long as FedAvg


def test_fedrep_wants_steps_for_the_body():
    assert (
        refused("fedrep", head_steps=5) == "head_steps is 5; allowed is less than local_steps (5)"
    )
    assert "local_epochs (2)" in refused("fedrep", head_steps=2, local_epochs=2)

"""All executors give the same weights, and each the same bytes for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl import methods
from fl.contracts import Grant, value_of
from fl.executors.batched import Batched
from fl.executors.one_by_one import OneByOne
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.conftest import Bench, view_of
from tests.fl.random_jobs import CNN, MLP, assert_close, same

STEPS = 3
TWO_PARTS = {"personal_steps": STEPS, "global_steps": STEPS}
STEPS_OF = {"liu": TWO_PARTS, "fedalt": TWO_PARTS, "fedsim": TWO_PARTS}


@pytest.fixture(scope="module")
def benches(digits):
    """The digits with a small network of each kind, and devices of four sizes."""
    return {
        name: Bench(LearningTask(build(name, digits.input_shape, 10), digits, 48, Seeds(3)))
        for name in (MLP, CNN)
    }


@pytest.fixture(scope="module")
def rounds(benches):
    """(model, method) -> method, state, jobs of a round on devices of different capability, results
    one by one and of a stack.
    """
    found = {}

    def make(model, name):
        if (model, name) not in found:
            bench = benches[model]
            method = bench.method(name, **STEPS_OF.get(name, {"local_steps": STEPS}))
            state = method.start()
            view = replace(view_of(method.task), capability=np.array([1.0, 0.5, 0.25, 0.5]))
            chosen = np.arange(4)
            rho = method.demand(state, view, chosen).rho_max.clip(max=0.4)
            jobs = [
                method.configure(state, view, Grant(k, 0.25, float(rho[k]), 1.0, 1.0))
                for k in range(4)
            ]
            results = [each(method.task).run(jobs) for each in (OneByOne, Batched)]
            found[model, name] = method, state, view, jobs, *results
        return found[model, name]

    return make


@pytest.mark.parametrize("model", [MLP, pytest.param(CNN, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", methods.available())
class TestEveryMethod:
    """A round of four devices, as the method orders it."""

    def test_the_weights_after_a_round_of_stacks(self, rounds, model, name):
        method, state, view, jobs, expected, trained = rounds(model, name)
        if any(callable(phase.mask) for job in jobs for phase in job.phases):
            kept = [int(one.mask.sum()) for one in expected]
            assert [int(one.mask.sum()) for one in trained] == kept
            pieces = phase_by_phase(method.task, jobs)
            trained = Batched(method.task).run(pieces)
            expected = OneByOne(method.task).run(pieces)
            assert_close(trained, expected)
            last = np.cumsum([len(job.phases) for job in jobs]) - 1
            trained, expected = ([given[i] for i in last] for given in (trained, expected))
        assert_close(trained, expected)
        arrived = [Executed(job, one) for job, one in zip(jobs, trained, strict=True)]
        alone = [Executed(job, one) for job, one in zip(jobs, expected, strict=True)]
        after, reference = (
            method.aggregate(method.retain(state, u), view, u) for u in (arrived, alone)
        )
        assert torch.allclose(after.w, reference.w, atol=1e-5 * float(reference.w.abs().max()))
        assert any(
            not torch.equal(one.w, method.received(state, k)) for k, one in enumerate(trained)
        )

    @pytest.mark.slow
    def test_the_bytes_of_any_number_of_threads(self, rounds, model, name):
        method, *_, jobs, expected, stacked = rounds(model, name)
        task = method.task
        assert same(OneByOne(task, 3).run(jobs), expected)
        assert same(Batched(task, 2).run(jobs), stacked)
        assert same(Batched(task).run(jobs[1:][::-1])[::-1], stacked[1:])


def phase_by_phase(task, jobs):
    """Every phase as a job that starts from what `OneByOne` gives for the phases before.

    A mask that a method ranks by the changes of a warm-up hangs on their last bits, in which
    executors, and machines, differ: so all of them get the same mask.
    """
    pieces = []
    for job in jobs:
        done = []
        for phase in job.phases:
            given = {key: getattr(phase, key) for key in ("start", "mask", "submodel")}
            phase = replace(phase, **{key: value_of(it, done) for key, it in given.items()})
            pieces.append(replace(job, phases=(phase,)))
            done.append(OneByOne(task).run(pieces[-1:])[0].w)
    return pieces


class Executed:
    """An update that is there already, and as fresh as the model that it changes."""

    weight = 1.0

    def __init__(self, job, trained):
        self.job, self.trained = job, trained

    def result(self):
        return self.trained

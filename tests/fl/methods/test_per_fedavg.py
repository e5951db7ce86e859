"""Per-FedAvg: steps of its gradient by hand, and what devices use."""

from dataclasses import replace

import pytest
import torch

from fl.contracts import Phase
from fl.errors import MethodError
from fl.executors.deferred_training import Trainer
from fl.method_base.method import check
from fl.methods import resolve
from fl.methods.per_fedavg import after_a_step, halves
from fl.models.layers.learned_layers import Linear
from fl.training import local_sgd as local

LR = 0.05


ONE = [[1.0]]  # a single sample x = 1


def refused(name, **params):
    with pytest.raises(MethodError) as error:
        check(resolve(name), params)
    return str(error.value)


@pytest.mark.parametrize(("exact", "expected"), [(False, 0.91), (True, 0.919)])
def test_a_step_of_per_fedavg_on_a_parabola(tiny_bench, exact, expected):  # FedAvg gives 0.90
    bench = tiny_bench([Linear(1, 2, bias=False)], ONE, [1])
    half_square = lambda w: 0.5 * w.square().sum()  # noqa: E731
    loss = lambda w, x, y: after_a_step(w, half_square, half_square, 0.1, exact)  # noqa: E731
    (job,) = bench.jobs(bench.method("fedavg"), bench.method("fedavg").start(), devices=[0])
    phase = Phase(torch.ones(2), torch.ones(2, dtype=torch.bool), 1, 0.1, loss=loss)
    assert Trainer(bench.task).submit([replace(job, phases=(phase,))])[
        0
    ].result().w.tolist() == pytest.approx([expected] * 2)


def test_a_step_of_per_fedavg_takes_two_halves_of_a_batch(bench):
    method = bench.method("per-fedavg", local_steps=1, lr=0.2, inner_lr=0.1)
    state = method.start()
    (job,) = bench.jobs(method, state, devices=[0])
    index = local.batches(bench.task, job.phases[0], job)[0]
    x, y = (values[index] for values in bench.task.train)

    def gradient(w, x, y):
        leaf = w.clone().requires_grad_(True)
        return torch.autograd.grad(
            torch.nn.functional.cross_entropy(bench.task.architecture.logits(leaf, x), y), leaf
        )[0]

    inner = state.w - 0.1 * gradient(state.w, x[:8], y[:8])
    expected = state.w - 0.2 * gradient(inner, x[8:], y[8:])
    assert torch.allclose(Trainer(bench.task).submit([job])[0].result().w, expected, atol=1e-7)
    assert [len(part[1]) for part in halves(x[:1], y[:1])] == [1, 1]
    assert [len(part[1]) for part in halves(x[:5], y[:5])] == [2, 3]


@pytest.mark.parametrize("variant", ["fo", "exact"])
def test_per_fedavg_differs_from_fedavg_but_for_an_inner_step_of_nothing(bench, variant):
    _, fedavg = bench.play("fedavg", local_steps=3, lr=LR)
    _, zero = bench.play("per-fedavg", local_steps=3, lr=LR, inner_lr=0.0)
    _, state = bench.play("per-fedavg", local_steps=3, lr=LR, variant=variant)
    assert torch.equal(zero.w, fedavg.w)
    assert not torch.equal(state.w, fedavg.w)


@pytest.mark.slow
def test_devices_of_per_fedavg_use_what_they_tune(bench):
    method, state = bench.play("per-fedavg", local_steps=3, lr=LR, inner_lr=0.05, tuning_epochs=2)
    model = method.personalise(state, 1)
    alone = bench.method("fedavg", local_epochs=2, lr=0.05)
    (job,) = bench.jobs(alone, state, devices=[1])
    tuned = replace(job, phases=(replace(job.phases[0], batches="tuning"),))
    assert torch.equal(model, Trainer(bench.task).submit([tuned])[0].result().w)
    assert torch.equal(model, method.personalise(state, 1)) and not torch.equal(model, state.w)
    assert method.received(state, 1) is state.w
    assert bench.method("per-fedavg", tuning_epochs=0).personalise(state, 1) is state.w


def test_per_fedavg_is_charged_every_gradient(bench):
    whole = bench.method("fedavg").stages(0, 0.0)[0].work
    assert bench.method("per-fedavg").stages(0, 0.0)[0].work == whole
    assert (
        bench.method("per-fedavg", variant="exact").stages(0, 0.0)[0].work.flops == 2 * whole.flops
    )
    assert bench.method("per-fedavg", inner_lr=0.0).stages(0, 0.0)[0].work == whole
    assert "inner_lr is 0" in refused("per-fedavg", inner_lr=0, variant="exact")

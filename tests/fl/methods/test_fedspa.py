"""FedSpa: masks that move."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.executors.deferred_training import Trainer
from fl.methods.fedspa import cosine, erk, regrown
from fl.models.architectures import build
from fl.models.layout import Slot
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

LR = 0.05


def test_the_cosine_of_fedspa():
    assert [cosine(t, 500, 0.5) for t in (0, 250, 500, 900)] == pytest.approx(
        [0.5, 0.25, 0.0, 0.0], abs=1e-12
    )


def test_erk_densities_of_lenet_by_hand():
    """Raw 31/500, 85/25,000, 1,300/400,000, 510/5,000: the first and the last layer are dense, two
    share the rest.
    """
    shapes = [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)]
    found = erk(shapes, 0.5)
    left = 0.5 * 430_500 - 500 - 5_000
    assert found == pytest.approx(
        [1.0, left * 80 / 25_000 / 1_380, left * 1_300 / 400_000 / 1_380, 1.0]
    )
    assert sum(d * np.prod(s) for d, s in zip(found, shapes, strict=True)) == pytest.approx(215_250)
    assert erk(shapes, 1.0) == [1.0] * 4


def test_dropping_and_growing_by_hand():
    slot = Slot("w", (6,), 0, "weight", "features", 0)
    mask = torch.tensor([True, True, True, True, False, False])
    w = torch.tensor([0.9, -0.1, 0.2, -0.8, 0.0, 0.0])
    gradient = torch.tensor(
        [9.0, 0.3, 0.1, 9.0, -0.4, 0.2]
    )  # of the dropped 1 and 2, and of 4 and 5, the largest grow
    after = regrown([slot], mask, w, gradient, 0.5)
    assert after.tolist() == [True, True, False, True, True, False]
    assert torch.equal(regrown([slot], mask, w, gradient, 0.0), mask)


@given(st.integers(1, 30), st.integers(0, 30), st.floats(0, 1), st.integers(0, 99))
def test_density_is_constant(held, free, share, seed):
    rng = np.random.default_rng(seed)
    mask = torch.from_numpy(rng.permutation(held + free) < held)
    w, gradient = (torch.from_numpy(rng.standard_normal(held + free)) for _ in range(2))
    slot = Slot("w", (held + free,), 0, "weight", "features", 0)
    assert regrown([slot], mask, w * mask, gradient, share).sum() == held


def test_masks_of_fedspa_move_in_every_round_and_keep_their_density(bench):
    method = bench.method("fedspa", local_steps=3, lr=LR)
    state, size = method.start(), bench.task.layout.size
    counts = [int(state.w[size:][slot.slice].sum()) for slot in method.sparse]
    assert sum(counts) == pytest.approx(0.5 * sum(slot.size for slot in method.sparse), abs=2)
    for _ in range(3):
        before, state = state, bench.round(method, state)
        for k in range(4):
            old, new = method.received(before, k)[size:], state.local[k]
            assert not torch.equal(old, new)
            assert [int(new[slot.slice].sum()) for slot in method.sparse] == counts
    assert not torch.equal(state.local[0], state.local[1])
    assert torch.equal(state.w[size:], method.start().w[size:])


def test_what_fedspa_trains_sends_and_uses(bench):
    method = bench.method("fedspa", local_steps=3, lr=LR)
    state, size = method.start(), bench.task.layout.size
    (job,) = bench.jobs(method, state, devices=[1])
    done = Trainer(bench.task).submit([job])[0].result()
    mask = state.w[size:] > 0
    sent = method.encode(job, done)
    assert torch.equal(sent.travels[:size], mask) and not sent.travels[size:].any()
    assert (done.w[:size][~mask] == 0).all()
    after = method.aggregate(
        state, view_of(bench.task), Trainer(bench.task).submit(bench.jobs(method, state))
    )
    assert torch.equal(
        after.w[:size][~mask], state.w[:size][~mask]
    )  # the server's model stays dense
    assert not torch.equal(after.w[:size][mask], state.w[:size][mask])
    assert torch.equal(method.personalise(after, 0), after.w[:size] * mask)
    assert job.payload.bits_up == job.payload.bits_down == 32 * int(mask.sum())


def test_the_gradient_that_fedspa_grows_by(bench):
    """A step of size 1 on all weights from the masked model ends at minus the gradient where the
    model is zero.
    """
    method = bench.method("fedspa", local_steps=2, lr=LR)
    state, size = method.start(), bench.task.layout.size
    (job,) = bench.jobs(method, state, devices=[0])
    train, dense = job.phases
    plain = replace(job, finish=None, phases=(train,))
    w = Trainer(bench.task).submit([plain])[0].result().w * train.mask
    both = Trainer(bench.task).submit([replace(job, finish=None)])[0].result().w
    index = local.batches(bench.task, dense, job)[0]
    leaf = w[:size].clone().requires_grad_(True)
    x, y = (values[index] for values in bench.task.train)
    (gradient,) = torch.autograd.grad(
        torch.nn.functional.cross_entropy(bench.task.architecture.logits(leaf, x), y), leaf
    )
    assert torch.allclose(w[:size] - both[:size], gradient, atol=1e-6)
    assert gradient[w[:size] == 0].abs().max() > 1e-3
    done = Trainer(bench.task).submit([job])[0].result()
    assert torch.equal(done.w[:size], w[:size])
    assert torch.equal(
        done.w[size:] > 0, regrown(method.sparse, train.mask[:size], w, gradient, 0.5)
    )


@pytest.mark.parametrize(("coding", "bits"), [("bitmap", 5_960), ("entropy", 5_960 * 0.8112781)])
def test_the_mask_of_fedspa_has_a_place_for_each_weight_that_it_can_drop(digits, coding, bits):
    """8 x 9 + 16 x 72 + 64 x 64 + 10 x 64 = 5,960 weights, a quarter of them kept; 98 biases are
    always there.
    """
    task = LearningTask(build("digits-cnn", digits.input_shape, 10), digits, 16, Seeds(3))
    plain, told = (
        Bench(replace(task, accounting=accounting)).method(
            "fedspa", density=0.25, densities="uniform"
        )
        for accounting in (Accounting(), Accounting(mask_overhead=coding))
    )
    kept = plain.kept(None, view_of(task), 0)
    assert told.submodel_payload(kept).bits_down == plain.submodel_payload(kept).bits_down
    assert told.submodel_payload(kept).bits_up - plain.submodel_payload(
        kept
    ).bits_up == pytest.approx(bits, abs=0.02)


def test_fedspa_with_everything_kept_is_fedavg(bench):
    _, fedavg = bench.play("fedavg", rounds=2, local_steps=3, lr=LR)
    _, state = bench.play(
        "fedspa", rounds=2, local_steps=3, lr=LR, density=1.0, averaging="holders"
    )
    assert torch.equal(state.w[: bench.task.layout.size], fedavg.w)


def test_fedspa_is_charged_masked_steps_and_one_dense_gradient(bench):
    method, fedavg = bench.method("fedspa", density=0.5), bench.method("fedavg")
    (job,) = bench.jobs(method, method.start(), devices=[0])
    train, gradient = job.stages
    whole = fedavg.stages(0, 0.0)[0].work
    assert gradient.work.flops == whole.flops / 5
    kept = job.payload.bits_up / 32
    assert train.work.weight_steps == 5 * kept and train.work.flops < 0.6 * whole.flops
    uniform = bench.method("fedspa", densities="uniform")
    (job,) = bench.jobs(uniform, uniform.start(), devices=[0])
    assert job.stages[0].work.flops == pytest.approx(whole.flops / 2, rel=0.01)

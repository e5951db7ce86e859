"""FedPM: random weights and learned masks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.data.datasets import load, spread
from fl.data.samples import Federated
from fl.executors.deferred_training import Trainer
from fl.masks.posterior import Beta
from fl.methods.fedpm import counted
from fl.models.architectures import build
from fl.models.layers.learned_layers import Linear
from fl.task import LearningTask
from tests.fl.conftest import Bench, view_of

ONE = [[1.0]]  # a single sample x = 1


def trained(bench, method, state, k=0):
    (job,) = bench.jobs(method, state, devices=[k])
    return Trainer(bench.task).submit([job])[0].result()


class Lots:
    """Draws 0.7, always."""

    def random(self, size, dtype):
        return np.full(size, 0.7, dtype=dtype)


def test_the_posterior_of_fedpm_counts_masks():
    prior, masks = (
        Beta(torch.ones(2), torch.ones(2)),
        [torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])],
    )
    assert counted(prior, masks).mode().tolist() == [1.0, 0.5]
    assert counted(prior, masks, 0.01).mode().tolist() == pytest.approx([0.99, 0.5], abs=1e-7)
    again = counted(counted(prior, masks), masks[:1])
    assert again.mode().tolist() == pytest.approx([1.0, 1 / 3])


def test_a_mask_of_fedpm_is_sent_at_its_entropy():
    lenet = spread(load("digits"), 2, Seeds(0))
    method = Bench(
        LearningTask(build("lenet5-caffe", (1, 28, 28), 10), lenet, 20, Seeds(0))
    ).method("fedpm")
    mask = np.zeros(430_500, dtype=bool)
    mask[:129_150] = True  # f = 0.3
    up, down = method.submodel_payload(mask).bits_up, method.submodel_payload(mask).bits_down
    assert (up - np.log2(430_500)) / 430_500 == pytest.approx(0.88129, abs=5e-6)
    mask[: 430_500 // 2] = True
    assert method.submodel_payload(mask).bits_up == pytest.approx(430_519, abs=0.5)
    half = method.submodel_payload(mask)
    assert (half.bits_up + half.bits_down) * 10 * 500 / 1e9 == pytest.approx(71.03, abs=0.005)
    assert down == 13_776_000


@pytest.mark.parametrize(("surrogate", "power"), [("fedpm", 2), ("identity", 1)])
def test_a_step_of_fedpm_by_hand(tiny_bench, surrogate, power):
    """w m with m = [0.7 < 0.8, 0.7 < 0.6], and d(w m)/ds = w theta theta (1 - theta): that of a
    draw is theta.
    """
    bench = tiny_bench([Linear(1, 2, bias=False)], ONE, [1])
    method = bench.method("fedpm", local_steps=1, lr=1.0, optimiser="sgd", surrogate=surrogate)
    weights, theta = torch.from_numpy(method.constants), torch.tensor([0.8, 0.6])
    assert weights.abs().tolist() == pytest.approx([np.e, np.e])
    (job,) = bench.jobs(method, replace(method.start(), w=theta), devices=[0])
    (phase,) = job.phases
    s = phase.start.clone().requires_grad_(True)
    used = phase.effective(s, Lots())
    assert torch.equal(used.detach(), weights * torch.tensor([1.0, 0.0]))
    (gradient,) = torch.autograd.grad(used.sum(), [s])
    assert gradient.tolist() == pytest.approx(
        (weights * theta**power * (1 - theta)).tolist(), rel=1e-5
    )
    moved = Trainer(bench.task).submit([job])[0].result().w - phase.start
    assert (moved != 0).all()


def test_the_weights_of_fedpm_never_move_and_masks_are_used(bench):
    method, state = bench.play("fedpm", rounds=2, local_steps=3)
    model = method.personalise(state, 0)
    assert set(
        torch.unique((model / torch.from_numpy(method.constants)).round(decimals=5)).tolist()
    ) == {0.0, 1.0}
    assert method.personalise(state, 3) is model
    assert state.w.min().item() == pytest.approx(0.01) and state.w.max().item() == pytest.approx(
        0.99
    )
    same_state = replace(state)
    assert torch.equal(method.personalise(same_state, 1), model)  # the same draw for the same round


def test_what_fedpm_sends_is_drawn_from_what_it_learned(bench):
    method = bench.method("fedpm", local_steps=2)
    state = method.start()
    updates = Trainer(bench.task, encode=method.encode, charged=method.charged).submit(
        bench.jobs(method, state)
    )
    masks = [method.encode(update.job, update.result()).values for update in updates]
    for update, mask in zip(updates, masks, strict=True):
        theta = update.result().w.sigmoid()
        assert mask.mean() == pytest.approx(theta.mean().item(), abs=4 * (0.25 / len(mask)) ** 0.5)
        f = mask.mean().item()
        entropy = -f * np.log2(f) - (1 - f) * np.log2(1 - f)
        assert update.bits_up() == pytest.approx(len(mask) * entropy + np.log2(len(mask)), rel=1e-6)
        (stage,) = update.stages()
        assert stage.work.weight_steps == 2 * int(mask.sum())
    after = method.aggregate(state, view_of(bench.task), updates)
    assert torch.allclose(after.w, 0.01 + 0.98 * torch.stack(masks).mean(0), atol=1e-6)
    kept = bench.method("fedpm", reset_rounds=2)
    once = kept.aggregate(state, view_of(bench.task), updates)
    twice = kept.aggregate(once, view_of(bench.task), updates)
    assert sorted(once.memo) == ["alpha", "beta", "used"] and list(twice.memo) == ["used"]
    assert torch.equal(kept.aggregate(state, view_of(bench.task), []).w, state.w)


def test_the_constants_of_fedpm(bench):
    method = bench.method("fedpm")
    parts = bench.task.layout.named(torch.from_numpy(method.constants).abs())
    for name, c in parts.items():
        weight = bench.task.layout.named(method.constants)[name.replace("bias", "weight")]
        assert torch.allclose(
            c, torch.tensor(np.e / np.prod(weight.shape[1:]) ** 0.5, dtype=torch.float32)
        ), name
    assert abs(np.sign(method.constants).mean()) < 4 / len(method.constants) ** 0.5


def test_the_posterior_of_fedpm_begins_anew_also_after_a_round_in_which_nobody_arrived(bench):
    method = bench.method("fedpm", reset_rounds=2, local_steps=1)
    once = bench.round(method, method.start())
    lost = method.aggregate(once, view_of(bench.task, 1), [])
    assert sorted(once.memo) == ["alpha", "beta", "used"] and sorted(lost.memo) == ["used"]
    assert torch.equal(lost.w, once.w) and lost.g == 2


@pytest.mark.parametrize(
    "params", [{}, {"optimiser": "sgd", "weight_decay": 1e-4, "momentum": 0.9}]
)
def test_norms_of_fedpm_stay_and_probabilities_of_0_and_1_are_numbers(params):
    y, x = np.arange(8), np.random.default_rng(0).random((8, 3, 32, 32), dtype=np.float32)
    data = Federated(y, y, lambda: (x, x), (3, 32, 32), [y], [y], tuple("0123456789"))
    bench = Bench(LearningTask(build("spafl-conv4", (3, 32, 32), 10), data, 4, Seeds(0)))
    method = bench.method("fedpm", local_steps=2, softening=0.0, **params)
    theta = method.start().w
    theta[:2] = torch.tensor([0.0, 1.0])
    w = trained(bench, method, replace(method.start(), w=theta)).w
    norms = ~torch.from_numpy(method.maskable)
    assert norms.any() and (w[norms].sigmoid() == 1).all() and not w.isnan().any()
    assert w[:2].sigmoid().tolist() == [0.0, 1.0]

"""The small baselines: reductions to FedAvg to the byte, and the numbers of fedlps.md and spafl.md, section 12."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgesim import load, simulate
from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Grant, Outcome, Phase, Report, Trained, View
from fl.data.datasets import Federated, federated
from fl.errors import MethodError
from fl.executors.trainer import Trainer
from fl.masks.posterior import Beta
from fl.method_base.method import check
from fl.method_base.state import State
from fl.methods import resolve
from fl.methods.fedpm import counted
from fl.methods.fedspa import cosine, erk, regrown
from fl.methods.oort import utility
from fl.methods.per_fedavg import after_a_step, halves
from fl.methods.refl import deviation, deviations, staleness_weight
from fl.models.architectures import build
from fl.models.layers import Linear
from fl.models.layout import Slot
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

LR = 0.05
ONE = [[1.0]]  # a single sample x = 1


def refused(name, **params):
    with pytest.raises(MethodError) as error:
        check(resolve(name), params)
    return str(error.value)


def trained(bench, method, state, k=0):
    (job,) = bench.jobs(method, state, devices=[k])
    return Trainer(bench.task).submit([job])[0].result()


# --- Ditto -----------------------------------------------------------------------------------------------------------


def test_a_personal_step_of_ditto_by_hand(tiny_bench):  # fedlps.md, check 20
    """Logits v x with v = [1, 1], x = 1, y = 1: the gradient of the loss is [0.5, -0.5], v - w = 1."""
    bench = tiny_bench([Linear(1, 2, bias=False)], ONE, [1])
    method = bench.method("ditto", local_steps=1, lr=0.1, lam=0.1)
    state = replace(method.start(), w=torch.tensor([0.0, 0.0, 1.0, 1.0]))
    w = trained(bench, method, state).w
    assert w[2:].tolist() == pytest.approx([0.94, 1.04], abs=1e-7)
    assert w[:2].tolist() == pytest.approx([-0.05, 0.05], abs=1e-7)


def test_the_pull_of_ditto_doubles_with_the_distance(tiny_bench):
    bench = tiny_bench([Linear(1, 2, bias=False)], ONE, [1])
    method = bench.method("ditto", local_steps=1, lr=1.0, lam=0.5)
    moved = []
    for far in (1.0, 2.0):
        state = replace(method.start(), w=torch.tensor([0.0, 0.0, far, far]))
        moved.append(
            trained(bench, method, state).w[2:].sum() - 2 * far
        )  # the loss moves the sum by nothing
    assert moved[0].item() == pytest.approx(-1.0, abs=1e-6)
    assert moved[1].item() == pytest.approx(-2.0, abs=1e-6)


def test_the_global_model_of_ditto_is_that_of_fedavg(bench):
    size = bench.task.layout.size
    _, fedavg = bench.play("fedavg", rounds=3, local_steps=3, lr=LR)
    method, ditto = bench.play("ditto", rounds=3, local_steps=3, lr=LR, lam=1.0)
    assert torch.equal(ditto.w[:size], fedavg.w)
    assert torch.equal(
        ditto.w[size:], method.start().w[size:]
    )  # the server never sees a personal model
    assert not any(
        torch.equal(method.personalise(ditto, k), fedavg.w) for k in range(bench.task.devices)
    )


def test_devices_that_cannot_improve_leave_the_global_model_of_ditto_alone(
    tiny_bench,
):  # check 20: no doubling
    bench = tiny_bench([Linear(1, 2, bias=False)], [[0.0]] * 3, [0, 1, 1])  # x = 0: no gradient
    method, state = bench.play("ditto", rounds=2, lr=0.1)
    assert torch.equal(state.w, method.start().w)


def test_what_stays_of_ditto_comes_back_and_is_used(bench):
    method, state = bench.play("ditto", rounds=1, local_steps=2, lr=LR)
    size = bench.task.layout.size
    assert torch.equal(method.received(state, 1)[size:], state.local[1])
    assert torch.equal(method.received(state, 1)[:size], state.w[:size])
    assert method.personalise(state, 1) is state.local[1]
    never = replace(state, local={})
    assert method.personalise(never, 1) is never.w
    assert method.weights() == {"total": 2 * size, "global": size, "personal": size}


def test_ditto_is_charged_two_trainings_and_one_model(bench):
    fedavg, ditto = bench.method("fedavg"), bench.method("ditto")
    personal, train = ditto.stages(0, 0.0)
    assert personal.work == train.work == fedavg.stages(0, 0.0)[0].work
    assert ditto.payload(0.0) == fedavg.payload(0.0)


# --- FedPer and FedRep -----------------------------------------------------------------------------------------------


def fedlps_task():
    digits = federated("digits", 2, Seeds(0), kind="labels", labels_per_device=3)
    return LearningTask(build("fedlps-cnn", (1, 28, 28), 10), digits, 20, Seeds(0))


@pytest.mark.parametrize("name", ["fedper", "fedrep"])
def test_all_but_the_output_layer_travels(name):  # fedlps.md, 10.14: 32 * 21,330 on MNIST
    method = Bench(fedlps_task()).method(name)
    assert method.payload(0.0).bits_up == method.payload(0.0).bits_down == 32 * 21_330
    assert method.weights()["personal"] == 510


@pytest.mark.parametrize("name", ["fedper", "fedrep"])
def test_heads_stay_and_bodies_are_averaged(bench, name):
    method = bench.method(name, local_steps=4, lr=LR)
    state = method.start()
    updates = Trainer(bench.task).submit(bench.jobs(method, state))
    view = replace(
        view_of(bench.task), samples=np.array([50, 10, 20, 20])
    )  # |D_k|: fedlps.md, 10.14 and 10.15
    after = method.aggregate(method.retain(state, updates), view, updates)
    head = torch.from_numpy(method.personal())
    assert torch.equal(after.w[head], state.w[head])
    mean = (
        sum(n * update.result().w.double() for n, update in zip([5, 1, 2, 2], updates, strict=True))
        / 10
    )
    assert torch.allclose(after.w[~head].double(), mean[~head], atol=1e-7)
    model = method.personalise(after, 2)
    assert torch.equal(model[head], updates[2].result().w[head]) and torch.equal(
        model[~head], after.w[~head]
    )
    assert torch.equal(method.personalise(replace(after, local={}), 2)[head], state.w[head])


def test_one_device_makes_fedper_to_fedavg(digits):
    """Where nobody else's head is in the mean, keeping one's own changes nothing."""
    alone = federated("digits", 1, Seeds(3))
    bench = Bench(LearningTask(build("digits-cnn", alone.input_shape, 10), alone, 16, Seeds(3)))
    _, fedavg = bench.play("fedavg", rounds=3, local_steps=3, lr=LR)
    method, fedper = bench.play("fedper", rounds=3, local_steps=3, lr=LR)
    assert torch.equal(method.personalise(fedper, 0), fedavg.w)


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


def test_the_head_of_fedrep_changes_at_every_participation(bench):  # check 20
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


# --- FedPM -----------------------------------------------------------------------------------------------------------


def test_the_posterior_of_fedpm_counts_masks():  # spafl.md, check 15
    prior, masks = (
        Beta(torch.ones(2), torch.ones(2)),
        [torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])],
    )
    assert counted(prior, masks).mode().tolist() == [1.0, 0.5]
    assert counted(prior, masks, 0.01).mode().tolist() == pytest.approx([0.99, 0.5], abs=1e-7)
    again = counted(counted(prior, masks), masks[:1])
    assert again.mode().tolist() == pytest.approx([1.0, 1 / 3])


def test_a_mask_of_fedpm_is_sent_at_its_entropy():  # check 15
    lenet = federated("digits", 2, Seeds(0))
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


class Lots:
    """Draws 0.7, always."""

    def random(self, size, dtype):
        return np.full(size, 0.7, dtype=dtype)


@pytest.mark.parametrize(("surrogate", "power"), [("fedpm", 2), ("identity", 1)])
def test_a_step_of_fedpm_by_hand(tiny_bench, surrogate, power):
    """w m with m = [0.7 < 0.8, 0.7 < 0.6], and d(w m)/ds = w theta theta (1 - theta): that of a draw is theta."""
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


# --- FedSpa ----------------------------------------------------------------------------------------------------------


def test_the_cosine_of_fedspa():  # spafl.md, check 17
    assert [cosine(t, 500, 0.5) for t in (0, 250, 500, 900)] == pytest.approx(
        [0.5, 0.25, 0.0, 0.0], abs=1e-12
    )


def test_erk_densities_of_lenet_by_hand():
    """Raw 31/500, 85/25,000, 1,300/400,000, 510/5,000: the first and the last layer are dense, two share the rest."""
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
def test_density_is_constant(held, free, share, seed):  # check 17; fedlps.md, check 21
    rng = np.random.default_rng(seed)
    mask = torch.from_numpy(rng.permutation(held + free) < held)
    w, gradient = (torch.from_numpy(rng.standard_normal(held + free)) for _ in range(2))
    slot = Slot("w", (held + free,), 0, "weight", "features", 0)
    assert regrown([slot], mask, w * mask, gradient, share).sum() == held


def test_masks_of_fedspa_move_in_every_round_and_keep_their_density(bench):  # fedlps.md, check 21
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
    """A step of size 1 on all weights from the masked model ends at minus the gradient where the model is zero."""
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
    """8 x 9 + 16 x 72 + 64 x 64 + 10 x 64 = 5,960 weights, a quarter of them kept; 98 biases are always there."""
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


# --- Complement sparsification ---------------------------------------------------------------------------------------


def complement(tiny_bench, trained_w, samples=(1,)):
    """A hidden layer of four weights of which two were sent; what the devices trained -> the state after round 1."""
    devices = len(samples)
    bench = tiny_bench(
        [Linear(1, 4, bias=False), Linear(4, 2, bias=False)], ONE * devices, [1] * devices
    )
    method = bench.method("cs")
    pad = torch.zeros(8)
    state = replace(
        method.start(), g=1, memo={"sent": torch.cat([torch.tensor([0.9, 0.0, -0.7, 0.0]), pad])}
    )
    jobs = bench.jobs(method, state)
    results = [
        Trained(torch.cat([torch.tensor(w), pad]), torch.ones(12, dtype=torch.bool), 0.0)
        for w in trained_w
    ]
    updates = [
        SimpleNamespace(job=job, result=lambda r=r: r) for job, r in zip(jobs, results, strict=True)
    ]
    view = replace(view_of(bench.task, 1), samples=np.array(samples))
    return method, updates, method.aggregate(state, view, updates)


def test_a_round_of_complement_sparsification_by_hand(tiny_bench):  # fedlps.md, check 18
    method, (update,), after = complement(tiny_bench, [[0.8, 0.2, -0.6, -0.4]])
    sent = method.encode(update.job, update.result())
    assert (sent.values * sent.travels)[:4].tolist() == pytest.approx([0.0, 0.2, 0.0, -0.4])
    assert after.w[:4].tolist() == pytest.approx([0.9, 0.3, -0.7, -0.6])
    assert method.personalise(after, 0)[:4].tolist() == pytest.approx([0.9, 0.0, -0.7, 0.0])
    assert torch.equal(method.probes(after)["dense"], after.w)


def test_complements_are_averaged_and_the_rest_is_not_amplified(tiny_bench):
    method, updates, after = complement(
        tiny_bench, [[0.8, 0.2, -0.6, -0.4], [0.0, 0.6, 0.0, -2.0]], (3, 1)
    )
    assert after.w[:4].tolist() == pytest.approx([0.9, 0.45, -0.7, -1.2])  # 1.5 (3 a + b) / 4
    assert method.personalise(after, 1)[:4].tolist() == pytest.approx([0.9, 0.0, 0.0, -1.2])
    for update in updates:
        update.result().w[4:] = 1.0  # the output layer
    again = method.aggregate(
        replace(after, g=1, memo={"sent": updates[0].job.phases[0].start}),
        view_of(method.task),
        updates,
    )
    assert again.w[4:].tolist() == [1.0] * 8


def test_the_first_round_of_cs_is_fedavg(bench):
    _, fedavg = bench.play("fedavg", rounds=1, local_steps=3, lr=LR, weighting="samples")
    method, state = bench.play("cs", rounds=1, local_steps=3, lr=LR)
    assert torch.equal(state.w, fedavg.w)
    used = method.personalise(state, 0)
    assert [int((used[slot.slice] != 0).sum()) for slot in method.sparse] == [
        slot.size // 2 for slot in method.sparse
    ]
    assert torch.equal(used[used != 0], state.w[used != 0])
    assert (
        sum(slot.size for slot in method.sparse) == 72 + 1152 + 4096
    )  # not the output layer, no bias


def test_cs_sends_half_and_receives_the_other_half(bench):
    method, state = bench.play("cs", rounds=1, local_steps=3, lr=LR)
    size, places = bench.task.layout.size, sum(slot.size for slot in method.sparse)
    first, later = bench.jobs(method, method.start())[0], bench.jobs(method, state)[0]
    assert first.payload.bits_up == first.payload.bits_down == 32 * size
    assert later.payload.bits_up == later.payload.bits_down == 32 * (size - places // 2)
    for job, g in ((first, 0), (later, 1)):
        demand = method.demand(None, view_of(bench.task, g), np.array([0]))
        assert (
            demand.bits_prunable[0] == job.payload.bits_up
            and demand.bits_down[0] == job.payload.bits_down
        )
        done = Trainer(bench.task).submit([job])[0].result()
        assert 32 * int(method.encode(job, done).travels.sum()) == job.payload.bits_up
    charged = bench.method("cs", sparsity=0.75).payload(0.0)
    assert charged.bits_down < charged.bits_up


def test_a_first_round_of_cs_in_which_nobody_arrives_costs_no_second_one(bench):
    """The server then prunes the initial model: what is charged, sent and trained in round 1 is a half all the same."""
    method, size = bench.method("cs", local_steps=3, lr=LR), bench.task.layout.size
    lost = method.aggregate(method.start(), view_of(bench.task), [])
    (job, *_) = bench.jobs(method, lost)
    places = sum(slot.size for slot in method.sparse)
    assert int((job.phases[0].start != 0).sum()) == size - places // 2 == job.payload.bits_down / 32
    after = bench.round(method, lost)
    moved = after.w != lost.w
    assert all(moved[slot.slice].sum() > slot.size / 4 for slot in method.sparse)
    again = method.aggregate(after, view_of(bench.task, 2), [])
    assert torch.equal(again.memo["sent"], after.memo["sent"]) and torch.equal(again.w, after.w)


# --- Per-FedAvg ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exact", "expected"), [(False, 0.91), (True, 0.919)])
def test_a_step_of_per_fedavg_on_a_parabola(
    tiny_bench, exact, expected
):  # fedlps.md, check 21; FedAvg gives 0.90
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


# --- Oort ------------------------------------------------------------------------------------------------------------


def test_the_utility_of_oort():  # fedlps.md, check 19
    assert utility.statistical(180, 0.25) == 90.0
    assert utility.slowness([2.0, 1.0, 0.5], 1.0).tolist() == [0.25, 1.0, 1.0]
    durations = np.arange(10.0)[::-1] + 1
    assert [utility.limit(durations, p) for p in (30, 95, 100)] == [4.0, 10.0, np.inf]


@pytest.mark.parametrize("loss", [np.inf, np.nan])
@pytest.mark.parametrize("diverged", [1, 20])
def test_oort_goes_on_choosing_where_losses_are_no_numbers(bench, loss, diverged):
    worth = {k: (utility.statistical(10, loss if k < diverged else 1.0), 1.0) for k in range(20)}
    method = bench.method("oort", participants=4, exploration=0.0, least_exploration=0.0)
    found = selections(bench, method, notes_of(worth), rounds=20)
    assert found.shape == (20, 4) and (np.diff(found) > 0).all()
    assert utility.statistical(10, loss) == 1e16 > utility.statistical(10, 1e29)


def test_scores_of_oort_by_hand():
    """U = 10, 20, 110: low = 9.99, range 100.01, no clip below 110; L = 1, 5, 10 in round 10; the last is slow."""
    found = utility.scores(
        np.array([10.0, 20.0, 110.0]), np.array([1.0, 1.0, 4.0]), np.array([1, 5, 10]), 10, 2.0
    )
    ages = np.sqrt(0.1 * np.log(10) / np.array([1, 5, 10]))
    assert found == pytest.approx((np.array([0.01, 10.01, 100.01]) / 100.01 + ages) * [1, 1, 0.25])
    many = utility.scores(np.r_[np.arange(19.0), 1e6], np.ones(20), np.ones(20), 1, np.inf)
    assert (
        many[18] == many[19] == pytest.approx(18 / 1e6)
    )  # the outlier counts as the 90th percentile
    assert utility.shortlist(np.array([1.0, 0.5, 0.96, 0.94]), 1, 0.95).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("now", "expected"),
    [(1.0, 35.0), (1.09, 35.0), (0.5, 30.0), (2.0, 30.0), (6.0, 25.0), (5.9, 30.0)],
)
def test_the_pacer_of_oort(now, expected):
    assert utility.paced(30.0, [1.0] * 20 + [now] * 20, 20, 5.0) == expected


def test_draws_in_proportion_to_weights():
    rng = np.random.default_rng(0)
    first = np.bincount(
        [utility.drawn(rng, np.array([1.0, 2.0, 7.0, 0.0]), 2)[0] for _ in range(4000)], minlength=4
    )
    assert first / 4000 == pytest.approx([0.1, 0.2, 0.7, 0.0], abs=0.03)  # 4 deviations
    assert sorted(utility.drawn(rng, np.array([0.0, 0.0, 1.0]), 3)) == [0, 1, 2]


def outcome(update, finish_s, received=True, trained=True):
    grant = Grant(update.job.device, 0.1, 0.0, 1.0, 1.0)
    return Outcome(grant, update, "arrived" if received else "late", received, trained, finish_s)


def test_oort_hears_the_mean_squared_loss_and_trains_as_fedavg(bench):
    size = bench.task.layout.size
    method, fedavg = bench.method("oort", local_epochs=1, lr=1e-9), bench.method("fedavg")
    state = method.start()
    (update,) = Trainer(bench.task).submit(bench.jobs(method, state, devices=[2]))
    index = bench.task.data.train_index[2]
    x, y = (values[index] for values in bench.task.train)
    each = torch.nn.functional.cross_entropy(
        bench.task.architecture.logits(state.w, x), y, reduction="none"
    )
    assert update.result().w[-1].item() == pytest.approx(each.square().mean().item(), rel=1e-5)
    both = method.payload(0.0)
    assert (
        both.bits_up == fedavg.payload(0.0).bits_up + 32
        and both.bits_down == fedavg.payload(0.0).bits_down
    )
    _, ours = bench.play("oort", local_steps=3, lr=LR)
    _, theirs = bench.play("fedavg", local_steps=3, lr=LR)
    assert torch.equal(ours.w[:size], theirs.w)


def test_what_oort_notes_of_a_round(bench):
    method = bench.method("oort", participants=2, local_steps=1)
    state = method.start()
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=[0, 2]))
    report = Report(0, 9.0, (outcome(updates[0], 1.5), outcome(updates[1], np.nan, received=False)))
    notes = method.observe(state, report).notes
    worth = float(bench.task.samples[0]) * float(updates[0].result().w[-1]) ** 0.5
    assert notes["tried"] == {"0": [pytest.approx(worth), 1.5, 1], "2": [0.0, 9.0, 1]}
    assert notes["exploited"] == [0.0] and notes["percentile"] == 30.0
    again = method.observe(
        replace(state, notes=json.loads(json.dumps(notes))), replace(report, g=1)
    ).notes
    assert again["exploited"] == [0.0, pytest.approx(worth)] and again["tried"]["0"][2] == 2


def notes_of(worth, percentile=100.0):
    return {
        "tried": {str(k): [u, t, 1] for k, (u, t) in worth.items()},
        "exploited": [],
        "percentile": percentile,
    }


def selections(bench, method, notes, devices=20, rounds=300):
    task = replace(
        bench.task,
        data=replace(bench.task.data, train_index=[np.arange(5 + k) for k in range(devices)]),
    )
    method, state = replace(method, task=task), State(0, None, notes=notes)
    ones, samples = np.ones(devices), np.arange(devices) + 5
    views = [
        View(g, 0.0, np.arange(devices), ones, ones, samples, np.inf, ones, ones)
        for g in range(rounds)
    ]
    return np.array([method.select(state, view) for view in views])


def test_oort_asks_who_is_worth_it_and_not_slow(bench):
    worth = {k: (float(k), 1.0) for k in range(20)}
    method = bench.method("oort", participants=4, exploration=0.0, least_exploration=0.0)
    counts = np.bincount(selections(bench, method, notes_of(worth)).ravel(), minlength=20) / 300
    assert counts[15:].sum() > 3.9 and counts[:15].sum() < 0.1
    slow = worth | {k: (float(k), 3.0) for k in (17, 18, 19)}
    fewer = np.bincount(selections(bench, method, notes_of(slow, 30.0)).ravel(), minlength=20) / 300
    assert (fewer[17:] < 0.2 * counts[17:]).all() and fewer.sum() == 4


def test_oort_explores_less_and_less_and_prefers_many_samples(bench):
    worth = dict.fromkeys(range(6), (1.0, 1.0))
    method = bench.method("oort", participants=5)
    found = selections(bench, method, notes_of(worth), devices=40)
    new = (found >= 6).sum(1)
    assert new[0] == 4 and (new[60:] == 1).all()  # int(5 * 0.9), int(5 * 0.3)
    late = np.bincount(found[100:][found[100:] >= 6], minlength=40)
    assert (late[:35] == 0).all() and (
        late[35:] > 15
    ).all()  # of the 34 new ones the five with most samples
    assert [len(set(row)) for row in found.tolist()] == [5] * 300
    first = selections(bench, method, {}, rounds=50)
    assert len(np.unique(first)) == 20  # at random


def test_oort_and_refl_want_a_number():
    assert "write fedavg" in refused("oort", participants="none")
    assert "allowed is at most exploration (0.2)" in refused("oort", exploration=0.2)
    assert "give a number" in refused("refl", participants="none")


# --- REFL ------------------------------------------------------------------------------------------------------------


def test_the_weight_of_a_late_update():  # fedlps.md, check 19
    assert staleness_weight(1, 1.0, 0.35, 1.0) == pytest.approx(0.546242, abs=5e-7)
    assert staleness_weight(1, 1.0, 0.35, 10.0) == pytest.approx(0.662124, abs=5e-7)
    assert staleness_weight(3, 1.0, 0.0) == 0.25


def test_how_far_late_updates_deviate():
    """u = [2, 0], n = 1; late [0, 0] -> (u - [1, 0])^2 / 4 = 1/4; late [2, 4] -> [0, -2]^2 / 4 = 1."""
    mean, late = np.array([2.0, 0.0]), [np.array([0.0, 0.0]), np.array([2.0, 4.0])]
    assert [deviation(mean, 1, one) for one in late] == [0.25, 1.0]
    assert deviations(mean, 1, late) == [0.25, 1.0]
    assert deviations(mean, 3, late) == pytest.approx([0.25, 1.0])  # both shrink by the same
    assert deviations(None, 0, late) == deviations(0 * mean, 1, late) == [1.0, 1.0]
    assert deviations(mean, 1, []) == []


def test_refl_in_which_nobody_is_late_is_fedavg(bench):
    _, fedavg = bench.play("fedavg", rounds=3, local_steps=3, lr=LR)
    _, refl = bench.play("refl", rounds=3, local_steps=3, lr=LR)
    assert torch.equal(refl.w, fedavg.w) and refl.local == {}


def rounds_with_one_late(bench):
    """Round 0: all four train, device 3 does not arrive. Round 1: it sends, the others train and arrive."""
    method = bench.method("refl", local_steps=2, lr=LR)
    state = method.start()
    first = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, first), view_of(bench.task), first[:3])
    second = Trainer(bench.task).submit(bench.jobs(method, after))
    return method, state, first, after, second


def test_a_late_update_of_refl_is_held_and_only_sent(bench):
    method, state, first, after, second = rounds_with_one_late(bench)
    assert list(after.local) == [3] and after.notes["since"] == {"3": 0}
    assert torch.equal(after.local[3], first[3].result().w - state.w)
    held = second[3].job
    assert (
        held.stages == ()
        and held.payload.bits_down == 0
        and held.payload.bits_up == first[3].job.payload.bits_up
    )
    demand = method.demand(after, view_of(bench.task, 1), np.arange(4))
    assert (
        (demand.work_prunable.flops > 0).tolist()
        == (demand.bits_down > 0).tolist()
        == [True, True, True, False]
    )
    assert (demand.bits_prunable > 0).all()
    assert torch.equal(second[3].result().w, after.local[3])


def test_a_late_update_of_refl_counts_less(bench):
    method, state, first, after, second = rounds_with_one_late(bench)
    view = view_of(bench.task, 1)
    end = method.aggregate(method.retain(after, second), view, second)
    fresh = [update.result().w.double() - after.w.double() for update in second[:3]]
    late = first[3].result().w.double() - state.w.double()
    weight = 0.65 / 2 + 0.35 * (1 - np.exp(-1.0))
    expected = after.w.double() + (sum(fresh) + weight * late) / (3 + weight)
    assert torch.allclose(end.w.double(), expected, atol=1e-7)
    assert end.local == {} and end.notes["since"] == {}
    waits = method.aggregate(method.retain(after, second[:3]), view, second[:3])
    assert list(waits.local) == [3] and waits.notes["since"] == {
        "3": 0
    }  # not there: it goes on holding it
    nobody = method.aggregate(method.retain(after, second[3:]), view, second[3:])
    assert torch.allclose(nobody.w.double(), after.w.double() + late, atol=1e-7)


def test_late_updates_of_refl_count_by_how_far_they_deviate(bench):
    """Devices 2 and 3 are late; in the next round only 0 and 1 train: both deviations are taken from these two."""
    method = bench.method("refl", local_steps=2, lr=LR, beta=1.0)
    state = method.start()
    first = Trainer(bench.task).submit(bench.jobs(method, state))
    after = method.aggregate(method.retain(state, first), view_of(bench.task), first[:2])
    second = Trainer(bench.task).submit(bench.jobs(method, after))
    end = method.aggregate(method.retain(after, second), view_of(bench.task, 1), second)
    u = [update.result().w.double() - after.w.double() for update in second[:2]]
    s = [update.result().w.double() - state.w.double() for update in first[2:]]
    far = [(((u[0] + u[1]) / 2 - one) / 3).square().sum().item() for one in s]
    weights = [1 - np.exp(-one / max(far)) for one in far]
    moved = (u[0] + u[1] + weights[0] * s[0] + weights[1] * s[1]) / (2 + sum(weights))
    assert torch.allclose(end.w.double(), after.w.double() + moved, atol=1e-7)
    assert abs(weights[0] - weights[1]) > 0.01


def test_whom_refl_asks(bench):
    method = bench.method("refl", participants=2)
    free = State(
        5, None, notes={"asked": {"0": 3, "1": 5}, "seen": [9, 0, 9, 9], "stayed": [1, 0, 9, 1]}
    )
    chosen = [method.select(free, view_of(bench.task, g)).tolist() for g in range(6, 9)]
    assert chosen == [[2, 3]] * 3  # 0 and 1 rest
    late = replace(free, local={0: None})
    assert method.select(late, view_of(bench.task, 6)).tolist() == [
        0,
        3,
    ]  # 3 stayed once in nine times
    more = replace(late, local={0: None, 1: None, 2: None})
    assert method.select(more, view_of(bench.task, 6)).tolist() == [
        0,
        1,
        2,
        3,
    ]  # half of N_0 trains all the same
    rested = [
        method.select(replace(free, notes={}), view_of(bench.task, g)).tolist() for g in range(200)
    ]
    assert {tuple(row) for row in rested} == {(a, b) for a in range(4) for b in range(a + 1, 4)}


def test_refl_learns_who_stays(bench):
    method, state = bench.method("refl"), State(0, torch.zeros(3))
    for idle in ([0, 1], [0, 2], [0]):
        state = method.aggregate(
            state, replace(view_of(bench.task, state.g), idle=np.array(idle)), []
        )
    assert state.notes["seen"] == [2, 1, 1, 0] and state.notes["stayed"] == [2, 0, 0, 0]
    assert method.staying(state).tolist() == pytest.approx([3 / 4, 1 / 3, 1 / 3, 1 / 2])


def test_refl_on_the_deadline_clock(tmp_path):
    """Slow links: uploads break off at the deadline, and arrive in later rounds."""
    path = tmp_path / "late.yaml"
    path.write_text(LATE)
    run = simulate(load(path))
    held = run.measures[run.measures.name == "held updates"].value
    rows = run.device_rounds
    assert held.max() > 0 and (rows.status == "late").any()
    only_sent = rows[(rows.flops == 0) & (rows.status == "arrived")]
    assert len(only_sent) > 0 and (only_sent.bits_up > 0).all() and (only_sent.bits_down == 0).all()


LATE = """
name: late
rounds: 12
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}, fading: {kind: rayleigh, coherence: 9 ms}}
devices:
  - {count: 6, tx_power: 23 dBm, cpu: {frequency: 2 GHz, flops_per_cycle: 4}}
budget: {latency_threshold: 20 ms}
allocation: {solver: equal}
clock: {mode: deadline}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 40
  model: digits-cnn
  batch_size: 10
  method: {name: refl, participants: 4, lr: 0.05}
"""

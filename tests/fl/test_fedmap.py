"""FedMAP: phases, what travels and is charged, reductions; numbers of the checks of fedmap.md, section 9."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.contracts import Grant, View
from fl.data.datasets import Federated
from fl.errors import MethodError
from fl.evaluation.evaluate import evaluate
from fl.executors.trainer import Trainer
from fl.masks import unit_masks as masks
from fl.method_base.method import State, bind, check
from fl.methods import resolve
from fl.methods.fedmap.extraction import largest
from fl.methods.fedmap.thinning import unbiased_rate
from fl.models.architectures import build
from fl.task import LearningTask

SIZES = np.array([1, 1 / 4, 1 / 16, 1 / 64])
QUICK = {"phase_rounds": 2, "local_steps": 3, "lr": 0.05}
P, J = 6058, 5960  # digits-cnn


class Play:
    """Rounds of FedMAP on devices of given budgets."""

    def __init__(self, task, budgets=SIZES, **params):
        self.task, self.budgets = task, np.asarray(budgets, dtype=float)
        self.method = bind(resolve("fedmap"), task, QUICK | params)

    def view(self, g):
        ones = np.ones(self.task.devices)
        everybody = np.arange(self.task.devices)
        return View(g, 0.0, everybody, ones, ones, self.task.samples, np.inf, ones, self.budgets)

    def updates(self, state, devices=None, g=None):
        view = self.view(state.g)
        devices = range(self.task.devices) if devices is None else devices
        jobs = [self.method.configure(state, view, Grant(k, 0.1, 0.0, 1.0, 1.0)) for k in devices]
        return Trainer(self.task, encode=self.method.encode, charged=self.method.charged).submit(
            jobs
        )

    def round(self, state, devices=None):
        updates = self.updates(state, devices)
        return self.method.aggregate(
            self.method.retain(state, updates), self.view(state.g), updates
        )

    def rounds(self, count, state=None):
        state = self.method.start() if state is None else state
        for _ in range(count):
            state = self.round(state)
        return state


@pytest.fixture(scope="module")
def task(bench):
    return bench.task


@pytest.fixture(scope="module")
def lenet():
    """A task on LeNet without a use for its two pictures."""
    x, y = np.zeros((2, 1, 28, 28), np.float32), np.array([0, 1])
    each = [np.array([0]), np.array([1])]
    data = Federated(y, y, lambda: (x, x), (1, 28, 28), each, each, tuple("0123456789"))
    return LearningTask(build("lenet5-caffe", (1, 28, 28), 10), data, 1, Seeds(0))


def start_logits(play, state):
    (job,) = [update.job for update in play.updates(state, [0])]
    return job.phases[0].start([])[play.method.logits]


# --- phases ---------------------------------------------------------------------------------------------------------


def test_every_mask_phase_begins_at_one_half(task):
    """Check 9."""
    play = Play(task, prior_strength=3.0)
    state = play.method.start()
    assert not start_logits(play, state).any()
    state = play.round(state)
    alpha, beta = state.memo["alpha"], state.memo["beta"]
    p = torch.from_numpy(play.method.p.mode(state))
    assert (alpha >= 3).all()
    assert (beta >= 3).all()
    assert ((p > 0) & (p < 1)).all()
    assert torch.equal(start_logits(play, state), p.logit())
    state = play.rounds(3, state)
    assert state.g == play.method.cycle
    assert (
        play.method.p.mode(state).std() > 0.05
    )  # what is used goes on; what is learnt next begins anew
    assert not start_logits(play, state).any()
    warm = Play(task, prior_strength=3.0, warm_posterior=True, reset_rounds=2)
    assert (warm.round(state).memo["alpha"] >= state.memo["alpha"]).all()
    assert torch.equal(
        start_logits(warm, state), torch.from_numpy(warm.method.p.mode(state)).logit()
    )


def test_weights_stand_in_mask_phases_and_probabilities_in_model_phases(task):
    """Check 14."""
    play = Play(task)
    first = play.method.start()
    learnt = play.rounds(2, first)
    assert learnt.w.numpy().tobytes() == first.w.numpy().tobytes()
    trained = play.rounds(2, learnt)
    assert trained.memo["alpha"].numpy().tobytes() == learnt.memo["alpha"].numpy().tobytes()
    assert trained.memo["beta"].numpy().tobytes() == learnt.memo["beta"].numpy().tobytes()
    assert not torch.equal(trained.w, learnt.w)
    assert not trained.w[P:].any()  # logits and records are no weights


def test_one_model_round_as_printed(task):
    """E5."""
    method = Play(task, phase_rounds=3, model_rounds=1).method
    assert [method.learns_masks(g) for g in range(9)] == [True] * 3 + [False] + [True] * 3 + [
        False
    ] + [True]


def test_the_posterior_counts_what_arrives(task):
    """(9) with one device that made n draws: alpha + m, beta + [m < n]; a second round adds, a reset drops."""
    play = Play(task, mask_steps=0, budgets=[1 / 4] * 4)
    state = play.method.start()
    (update,) = updates = play.updates(state, [1])
    w = update.result().w
    survived, draws = w[play.method.logits], int(w[play.method.record][0])
    assert draws in (2, 3)
    after = play.method.aggregate(state, play.view(0), updates)
    assert torch.equal(after.memo["alpha"], 2 + survived)
    assert torch.equal(after.memo["beta"], 2 + (survived < draws).float())
    again = play.round(after, [1])
    added = again.memo["alpha"] - after.memo["alpha"]
    assert 0 < added.mean() < 2
    dropping = Play(task, mask_steps=0, budgets=[1 / 4] * 4, reset_rounds=1)
    assert torch.equal(dropping.round(after, [1]).memo["alpha"], 2 + added)


def test_a_stored_state_goes_on_to_the_byte(task):
    """Beliefs, budgets and who holds x are all that a mask round and a model round need."""
    play = Play(task)
    for count in (1, 3):
        state = play.rounds(count)
        again = State.from_arrays(*state.to_arrays())
        after = [play.round(one).to_arrays()[0] for one in (state, again)]
        assert (
            after[0].keys()
            == after[1].keys()
            == {"w", "memo/alpha", "memo/beta", "memo/gamma", "memo/holds"}
        )
        assert all(after[0][name].tobytes() == after[1][name].tobytes() for name in after[0])
    assert play.method.weights() == {"total": P, "global": P, "personal": 0}


# --- mask rounds ----------------------------------------------------------------------------------------------------


def test_a_weight_that_helps_becomes_likelier(tiny_bench):
    """Two classes, y = 0, x = (1, 1): the weights 5 and -5 of class 0 pull their logits apart, zeros do not move."""
    from fl.models.layers import Linear

    bench = tiny_bench((Linear(2, 2, bias=False),), [[1, 1]], [0])
    settings = {"local_steps": 200, "mask_scaler": False, "mask_lr": 0.02}
    for optimiser, rate in (("adam", 0.02), ("sgd", 0.5)):
        play = Play(
            bench.task, budgets=[1], **settings | {"mask_optimiser": optimiser, "mask_lr": rate}
        )
        state = play.method.start()
        state.w[:4] = torch.tensor([5.0, -5.0, 0.0, 0.0])
        (update,) = play.updates(state)
        job = update.job
        learnt = (
            Trainer(bench.task)
            .submit([replace(job, finish=None)])[0]
            .result()
            .w[play.method.logits]
        )
        assert learnt[0] > 0.5
        assert learnt[1] < -0.5
        assert not learnt[2:].any()


def test_the_control_makes_no_step_but_counts(task):
    play = Play(task, mask_steps=0)
    state = play.method.start()
    updates = play.updates(state)
    assert np.isnan(updates[0].result().loss)
    train, thinning = updates[0].stages()
    assert train.work.flops == train.work.weight_steps == 0
    assert thinning.work.flops == J  # one draw at a budget of 1
    other = Play(task).updates(state)
    assert not torch.equal(updates[3].result().w, other[3].result().w)


def test_what_a_mask_round_charges(task):
    """Section 5: forward through the child, backward through the parent, (n + 1) J random draws per step.

    At p = 1/2, a budget of 1 and logits that do not move, a parent has 1/2 and a child 1/4 of every layer.
    """
    play = Play(task, mask_lr=1e-9, local_steps=40)
    train, thinning = play.updates(play.method.start(), [0])[0].stages()
    macs = task.architecture.macs
    first, *rest = macs.values()
    per_sample = 2 * (
        first * (1 / 4 + 1 / 2) + sum(rest) * (1 / 4 + 2 / 2)
    )  # no gradient by the images
    assert train.work.flops == pytest.approx(40 * 16 * per_sample, rel=0.02)
    assert thinning.work.flops == J * (40 * 2 + 1)


def test_what_a_mask_round_sends(task):
    """Down p, and x to who does not hold it; up m with entropy coding, known only after training."""
    play = Play(task, mask_steps=0)
    state = play.method.start()
    updates = play.updates(state)
    assert [update.job.payload.bits_down for update in updates] == [32 * (J + P)] * 4
    assert all(
        update.job.payload.bits_up is None and update.job.stages is None for update in updates
    )
    assert updates[0].bits_up() == pytest.approx(J, rel=1e-3)  # one draw at p = 1/2: one bit each
    sent = play.method.encode(updates[0].job, updates[0].result())
    assert sent.travels.sum() == J
    state = play.method.aggregate(play.method.retain(state, updates[:2]), play.view(0), updates[:2])
    assert [update.job.payload.bits_down for update in play.updates(state)] == [32 * J] * 2 + [
        32 * (J + P)
    ] * 2
    assert not play.rounds(3, state).memo["holds"].any()  # x has changed
    raw = Play(task, mask_steps=0, count_coding="raw").updates(play.method.start())
    assert raw[0].bits_up() == J
    assert raw[1].bits_up() == 2 * J  # two or three draws: two bits


def test_the_plan_of_a_mask_round_is_near_what_comes(task):
    play = Play(task, mask_lr=1e-9)
    for state in (None, play.method.start()):
        demand = play.method.demand(state, play.view(0), np.arange(2))
        assert (demand.rho_min == demand.rho_max).all()
        assert demand.bits_down.tolist() == [32 * (J + P)] * 2
    update = play.updates(play.method.start(), [0])[0]
    assert demand.bits_prunable[0] == pytest.approx(update.bits_up(), rel=0.01)
    assert demand.work_prunable.flops[0] == pytest.approx(
        sum(s.work.flops for s in update.stages()), rel=0.25
    )
    assert play.method.forecast(play.view(0), 0, 0.0)[0].name == "train"


def test_late_devices_hold_x_and_are_not_counted(task):
    """H13: |A| is the number of counts that were received."""
    play = Play(task, mask_steps=0)
    state = play.method.start()
    updates = play.updates(state)
    after = play.method.aggregate(play.method.retain(state, updates), play.view(0), updates[:1])
    assert after.memo["holds"].all()
    assert (after.memo["alpha"] + after.memo["beta"]).max() <= 2 + 2 + 1
    nobody = play.method.aggregate(play.method.retain(state, []), play.view(0), [])
    assert torch.equal(nobody.memo["alpha"], state.memo["alpha"])
    assert nobody.g == 1
    model = play.rounds(2)
    assert torch.equal(play.method.aggregate(model, play.view(2), []).w, model.w)


def test_no_result_depends_on_who_trains_beside(task):
    """Check 18."""
    play = Play(task)
    for state in (play.method.start(), play.rounds(2)):
        together = [update.result().w for update in play.updates(state)]
        backwards = [update.result().w for update in play.updates(state, [3, 2, 1, 0])]
        alone = [play.updates(state, [k])[0].result().w for k in range(4)]
        for k in range(4):
            assert torch.equal(together[k], backwards[3 - k])
            assert torch.equal(together[k], alone[k])
    assert not torch.equal(together[2], together[3])


# --- model rounds ---------------------------------------------------------------------------------------------------


def test_full_budgets_are_fedavg_to_the_byte(bench):
    """Check 13."""
    play = Play(bench.task, budgets=np.ones(4))
    state = play.rounds(2)
    fedavg = bench.method("fedavg", local_steps=3, lr=0.05)
    plain = State(2, state.w[:P].clone())
    for _ in range(2):
        state, plain = play.round(state), bench.round(fedavg, plain)
        assert state.w[:P].numpy().tobytes() == plain.w.numpy().tobytes()
    assert not torch.equal(plain.w, fedavg.start().w)


@pytest.mark.parametrize("train_mask", ["topk", "sample", "sample_once"])
def test_a_weight_that_nobody_holds_keeps_its_bits(task, train_mask):
    """Check 13; and no device goes beyond its budget (check 8)."""
    play = Play(task, budgets=[1 / 16] * 4, train_mask=train_mask)
    state = play.rounds(2)
    kept = [play.method.kept(state, play.view(2), k)[:P] for k in range(4)]
    maskable = play.method.places.maskable
    assert all((one & maskable).sum() <= J / 16 and one[~maskable].all() for one in kept)
    held = torch.from_numpy(np.any(kept, axis=0))
    after = play.round(state)
    assert torch.equal(after.w[:P][~held], state.w[:P][~held])
    assert (after.w[:P][held] != state.w[:P][held]).float().mean() > 0.1  # not those of dead units


def test_which_submodel_is_trained(task):
    """H7, E1."""
    play = Play(task, phase_rounds=3)
    state = play.rounds(3)
    for train_mask, constant in (("sample", False), ("sample_once", True)):
        method = Play(task, phase_rounds=3, train_mask=train_mask).method
        masks_of = [method.kept(state, play.view(g), 1) for g in (3, 4)]
        assert (masks_of[0] == masks_of[1]).all() == constant
    dense = Play(task, phase_rounds=3, train_mask="sample", full_capacity="dense").method
    assert dense.kept(state, play.view(3), 0)[:P].all()
    assert not Play(task, train_mask="sample").method.kept(state, play.view(3), 0)[:P].all()
    literal = Play(task, phase_rounds=3, train_mask="sample", literal_thinning=True).method
    assert literal.kept(state, play.view(3), 0)[:P].all()
    assert play.method.kept(state, play.view(3), 0)[:P].all()
    refilled = Play(task, phase_rounds=3, train_mask="sample", refill="topk").method
    assert refilled.kept(state, play.view(3), 1)[:P][method.places.maskable].sum() == J // 4


def test_bits_of_a_model_round_on_lenet(lenet):
    """Section 5: 32 gamma d each way, and the mask down; gamma d is rounded down."""
    play = Play(lenet, budgets=[1 / 4, 1 / 4])
    state = play.method.start()
    bits = {}
    for gamma in SIZES:
        kept = play.method.submodels.weights_of(largest(play.method.submodels, state, gamma))
        bits[gamma] = play.method.submodel_payload(kept)
    assert [bits[gamma].bits_up for gamma in SIZES] == [
        13_776_000,
        3_444_000,
        32 * 26_906,
        32 * 6_726,
    ]
    assert [bits[gamma].bits_down - bits[gamma].bits_up for gamma in SIZES] == pytest.approx(
        [0, 349_255, 145_203, 49_988], abs=6
    )
    seed = Play(lenet, budgets=[1, 1], mask_overhead="seed").method
    assert seed.submodel_payload(kept).bits_down == 32 * 6_726 + 64
    assert play.updates(state, [0])[0].job.payload.bits_down == 2 * 13_776_000


def test_server_rates(task):
    """(2): with all four devices sampled every holder is; with two of four a weight of one holder moves twice."""
    state = Play(task).rounds(2)
    means = Play(task).round(state, [0, 1]).w
    half = Play(task, server_lr=0.5).round(state, [0, 1]).w
    assert torch.allclose(half, state.w + 0.5 * (means - state.w), atol=1e-7)
    exact = Play(task, server_rate="exact")
    holders = sum(exact.method.kept(state, exact.view(2), k) for k in range(4)).astype(float)
    rate = torch.from_numpy(unbiased_rate(holders, 4, 2))
    assert rate.unique().tolist() == pytest.approx([0, 1, 1.2, 2])  # nobody holds the logits
    moved = exact.round(state, [0, 1]).w
    assert torch.allclose(
        moved.double(), state.w.double() + rate * (means - state.w).double(), atol=1e-6
    )
    assert not torch.allclose(moved, means, atol=1e-5)
    assert torch.allclose(exact.round(state).w, Play(task).round(state).w, atol=1e-6)
    expected = Play(task, server_rate="expected", train_mask="sample")
    assert torch.isfinite(expected.round(state, [0, 1]).w).all()


def test_sizes_drawn_per_step(task):
    """FjORD style: nested parts of the device's own submodel; the mean over the sizes is charged."""
    own, every = Play(task, averaging="fjord"), Play(task, averaging="fjord", train_mask="sample")
    for play in (own, every):
        state = play.rounds(2)
        job = play.updates(state, [1])[0].job
        kept = play.method.kept(state, play.view(2), 1)
        ones, rng = torch.ones(len(kept)), np.random.default_rng(0)
        parts = [job.phases[0].effective(ones, rng).numpy() != 0 for _ in range(20)]
        maskable = [int(part[:P][play.method.places.maskable].sum()) for part in parts]
        assert all((part <= kept).all() for part in parts)
        assert max(maskable) <= J / 4
        assert len({size > J / 16 for size in maskable}) == 2  # the largest, and smaller ones
        assert min(maskable) <= J / 64
        largest = play.method.submodel_stages(play.view(2), 1, kept)[0].work.flops
        assert largest / 3 < job.stages[0].work.flops < largest
    alike = Play(task, budgets=[1 / 4] * 4, averaging="fjord")
    state = alike.rounds(2)
    plain = Play(task, budgets=[1 / 4] * 4)
    assert torch.allclose(alike.round(state).w, plain.round(state).w, atol=1e-6)


def test_unit_submodels(task):
    """H1: J units, dense submodels within the budget, the output layer whole."""
    play = Play(task, granularity="neuron")
    assert play.method.places.count == 8 + 16 + 64
    state = play.rounds(2)
    for k, gamma in enumerate(SIZES):
        kept = play.method.kept(state, play.view(2), k)
        named = task.layout.named(kept)
        assert (
            kept[:P][play.method.layout.where(lambda slot: slot.kind == "weight")[:P]].sum()
            <= gamma * J
        )
        rows = named["conv2.weight"].reshape(16, -1).any(axis=1)
        assert (named["conv2.bias"] == rows).all()
        assert named["linear2.weight"].any(axis=1).all()
    assert (
        play.updates(state, [2])[0].stages()[0].work.flops
        < play.updates(state, [0])[0].stages()[0].work.flops / 8
    )
    after = play.round(state)
    assert not torch.equal(after.w, state.w)


# --- what is used, and measured -------------------------------------------------------------------------------------


def test_devices_use_the_submodel_of_their_budget(task):
    play = Play(task, budgets=[1, 1 / 4, 1 / 4, 1 / 16])
    state = play.rounds(4)
    w = [play.method.personalise(state, k) for k in range(4)]
    assert w[1] is w[2]
    kept = [int((one[:P] != 0)[torch.from_numpy(play.method.places.maskable)].sum()) for one in w]
    assert kept == [J, J // 4, J // 4, J // 16]
    layer = task.layout.slots[-2]
    part = w[3][layer.slice]
    share = float((part != 0).float().mean())
    assert torch.allclose(part[part != 0], state.w[layer.slice][part != 0] / share**0.5)
    unscaled = Play(task, mask_scaler=False).method.personalise(state, 3)[layer.slice]
    assert torch.equal(unscaled[unscaled != 0], state.w[layer.slice][unscaled != 0])
    drawn = Play(task, extraction="sample").method.personalise(state, 0)
    assert 0.3 < float((drawn[:J] != 0).float().mean()) < 0.9


def test_probes_and_measures(task):
    play = Play(task, budgets=[1, 1 / 4, 1 / 4, 1 / 16])
    state = play.rounds(4)
    found = evaluate(task, play.method, state).measures
    names = [
        f"accuracy {how} {size}" for how in ("topk", "sample") for size in ("1", "0.25", "0.0625")
    ]
    assert set(names) < set(found)
    assert found["capacity used 1"] == pytest.approx(0.5, abs=0.1)
    assert 0 < found["capacity used 0.0625"] <= 1
    assert found["empty layers 1"] == 0
    assert found["spread of p"] == pytest.approx(float(play.method.p.mode(state).std()))
    asked = Play(task, sizes=[0.5]).method
    assert list(asked.probes(state)) == ["topk 0.5", "sample 0.5"]


def test_keys_without_effect():
    cls = resolve("fedmap")
    for given in (
        {"width": 0.5},
        {"refill": "topk"},
        {"full_capacity": "dense"},
        {"server_rate": "exact", "server_lr": 0.5},
        {"granularity": "neuron", "topk_over": "layer"},
        {"granularity": "neuron", "train_mask": "sample", "refill": "topk"},
    ):
        with pytest.raises(MethodError, match="is not read where"):
            check(cls, given)
    with pytest.raises(MethodError, match="server_rate"):
        check(cls, {"granularity": "neuron", "train_mask": "sample", "server_rate": "expected"})


# --- beside it ------------------------------------------------------------------------------------------------------


def test_static_and_rolling_submodels_of_lenet(lenet):
    """Check 15."""
    layout = lenet.layout
    half = layout.expand(masks.prefix(layout, 0.5, rounding="up"))
    assert half.sum() == 109_000
    view = View(
        0,
        0.0,
        np.arange(2),
        np.ones(2),
        np.ones(2),
        lenet.samples,
        np.inf,
        np.ones(2),
        np.full(2, 0.25),
    )
    static, rolling = (
        bind(resolve(name), lenet, {}).kept(None, view, 0) for name in ("heterofl", "fedrolex")
    )
    assert (static == half).all()
    assert (rolling == static).all()
    later = bind(resolve("fedrolex"), lenet, {}).kept(None, replace(view, g=1), 0)
    assert later.sum() == 109_000
    assert not (later == static).all()

"""Model rounds: payload, server rates, sizes per step."""

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.data.samples import Federated
from fl.errors import MethodError
from fl.method_base.method import State, check
from fl.methods import resolve
from fl.methods.fedmap.extraction import largest_of
from fl.methods.fedmap.thinning import unbiased_rate
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.methods.fedmap.conftest import SIZES, J, P, Play


@pytest.fixture(scope="module")
def lenet():
    """A task on LeNet without a use for its two pictures."""
    x, y = np.zeros((2, 1, 28, 28), np.float32), np.array([0, 1])
    each = [np.array([0]), np.array([1])]
    data = Federated(y, y, lambda: (x, x), (1, 28, 28), each, each, tuple("0123456789"))
    return LearningTask(build("lenet5-caffe", (1, 28, 28), 10), data, 1, Seeds(0))


@pytest.mark.slow
def test_full_budgets_are_fedavg_to_the_byte(bench):
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
    """Nor does a device go beyond its budget: sum M <= gamma J."""
    play = Play(task, budgets=[1 / 16] * 4, train_mask=train_mask)
    state = play.rounds(2)
    kept = [play.method.kept(state, play.view(2), k)[:P] for k in range(4)]
    maskable = play.method.places.maskable
    assert all((one & maskable).sum() <= J / 16 and one[~maskable].all() for one in kept)
    held = torch.from_numpy(np.any(kept, axis=0))
    after = play.round(state)
    assert torch.equal(after.w[:P][~held], state.w[:P][~held])
    assert (after.w[:P][held] != state.w[:P][held]).float().mean() > 0.1  # not those of dead units


@pytest.mark.slow
def test_bits_of_a_model_round_on_lenet(lenet):
    """Section 5: 32 gamma d each way, and the mask down; gamma d is rounded down."""
    play = Play(lenet, budgets=[1 / 4, 1 / 4])
    state = play.method.start()
    bits = {}
    for gamma in SIZES:
        kept = play.method.submodels.weights_of(largest_of(play.method.submodels, state)(gamma))
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


@pytest.mark.slow
def test_server_rates(task):
    """(2): with all four devices sampled every holder is; with two of four a weight of one holder
    moves twice.
    """
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


@pytest.mark.slow
def test_sizes_drawn_per_step(task):
    """FjORD style: nested parts of the device's own submodel; the mean of the sizes is charged."""
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


def test_the_exact_rate_counts_devices_not_their_updates(task):
    """Clocks whose jobs overlap: all four devices are among those that sent, one of them twice."""
    state = Play(task).rounds(2)
    exact = Play(task, server_rate="exact")
    updates = exact.updates(state, [0, 1, 2, 3, 3])
    moved = exact.method.aggregate(state, exact.view(2), updates).w
    plain = Play(task).method.aggregate(state, exact.view(2), updates).w
    assert torch.allclose(moved, plain, atol=1e-6)


def test_keys_without_effect():
    cls = resolve("fedmap")
    for given in (
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

"""FedMAP's thinning, gradient, posterior and extraction; numbers of the checks of fedmap.md, section 9."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.accounting import StepCost
from fl.contracts import Sent
from fl.errors import MethodError
from fl.masks.posterior import Beta, mask_bits
from fl.masks.straight_through import slope
from fl.method_base.aggregation import mean_over_holders
from fl.methods.fedmap.granularity import PerUnit, PerWeight, lengths
from fl.methods.fedmap.keep_probabilities import count_bits
from fl.methods.fedmap.mask_steps import MaskSteps, probability, spread
from fl.methods.fedmap.thinning import (
    Record,
    ThinningRules,
    empty_layers,
    expected_draws,
    expected_holders,
    refilled,
    scale,
    thin,
    unbiased_rate,
)
from fl.models.architectures import build
from fl.models.layout import Layout, Slot

U1, U2 = [0.3, 0.7, 0.1, 0.4], [0.6, 0.2, 0.9, 0.1]
HALF = np.full(4, 0.5, dtype=np.float32)
LENET = build("lenet5-caffe", (1, 28, 28), 10).layout


class Fixed:
    """A generator whose uniforms are given."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def random(self, size, dtype):
        draw = np.asarray(self.draws.pop(0), dtype=dtype)
        assert len(draw) == size
        return draw


def weights(count, least=0):
    """A grain of one layer of so many weights."""
    return PerWeight(Layout((Slot("w", (count, 1), 0, "weight", "classifier", 0),)), least)


def rng(name="thin", **keys):
    return Seeds(1).stream(name, **keys)


# --- thinning --------------------------------------------------------------------------------------------------------


def test_two_draws_by_hand():
    """Check 1."""
    drawn = thin(weights(4), HALF, 0.5, Fixed(U1, U2))
    assert drawn.mask.tolist() == [False, False, False, True]
    assert drawn.survived.tolist() == [1, 0, 1, 2]
    assert drawn.draws == 2


def test_at_least_one_draw_unless_as_printed():
    """E1."""
    assert thin(weights(4), HALF, 1.0, Fixed(U1)).draws == 1
    printed = thin(weights(4), HALF, 1.0, Fixed(), least=0)
    assert (printed.draws, printed.survived.any(), printed.mask.all()) == (0, False, True)


@given(st.integers(0, 2**32), st.floats(0.02, 1.0), st.integers(2, 60))
def test_budget_counts_and_conservation(seed, gamma, count):
    """Checks 8 and 10."""
    p = np.random.default_rng(seed).uniform(0.05, 0.95, count).astype(np.float32)
    grain = weights(count)
    drawn = thin(grain, p, gamma, np.random.default_rng(seed))
    assert drawn.mask.sum() <= gamma * count
    assert ((drawn.survived == drawn.draws) == drawn.mask).all()
    failures = drawn.survived < drawn.draws
    assert (drawn.survived + failures <= drawn.draws).all()
    assert failures.sum() == count - drawn.mask.sum()
    ended = drawn.mask | (drawn.survived == drawn.draws - 1)
    assert ((drawn.survived + failures == drawn.draws) == ended).all()
    child = grain.survivors(drawn.mask, p, np.random.default_rng(seed + 1))
    assert (child <= drawn.mask).all()


def test_every_candidate_is_part_of_the_one_before():
    """Check 8: the same stream ends earlier for a larger budget."""
    p = rng("p").uniform(0.3, 0.9, 300).astype(np.float32)
    chain = [thin(weights(300), p, gamma, rng()).mask for gamma in (1.0, 0.4, 0.1, 0.02)]
    assert all((later <= earlier).all() for earlier, later in pairwise(chain))
    assert chain[0].sum() > chain[-1].sum()


def test_expected_counts_leave_the_mode_at_one_half():
    """Check 11: E m = E failures = 0.875 after three draws at p = 1/2."""
    places = 40_000
    drawn = thin(weights(places), np.full(places, 0.5, np.float32), 0.2, rng())
    assert drawn.draws == 3
    for values in (drawn.survived, drawn.survived < drawn.draws):
        assert abs(values.mean() - 0.875) < 3 * values.std() / places**0.5


def test_a_submodel_that_never_fits_names_its_device():
    """H12."""
    with pytest.raises(
        MethodError, match="still has 4 of 4 weights after 200 draws, its budget is 2"
    ):
        thin(weights(4), np.ones(4, np.float32), 0.5, rng())
    with pytest.raises(MethodError, match="the submodel of device 7 still has"):
        thin(weights(4), np.ones(4, np.float32), 0.5, rng(), owner="device 7")


@pytest.mark.parametrize(
    ("gamma", "used"), [(1, 1 / 2), (0.64, 1 / 2), (0.36, 1 / 4), (0.16, 1 / 8)]
)
def test_capacity_that_thinning_uses_at_one_half(gamma, used):
    """H5; the spread for LeNet is 6.6e-4."""
    grain = PerWeight(LENET)
    p = np.full(grain.count, 0.5, np.float32)
    drawn = thin(grain, p, gamma, rng())
    assert abs(grain.size(drawn.mask) / grain.total - used) < 5 * 6.6e-4
    assert expected_draws(p, gamma) == drawn.draws


def test_refill_takes_the_likeliest_of_the_last_drop_up_to_the_budget():
    """H5."""
    p = np.array([0.5, 0.6, 0.9, 0.7, 0.8], np.float32)
    drawn = thin(weights(5), p, 0.6, Fixed([0.9, 0.1, 0.1, 0.1, 0.1], [0, 0.99, 0.99, 0.0, 0.99]))
    assert drawn.mask.tolist() == [False, False, False, True, False]
    assert refilled(weights(5), drawn, p, 0.6).tolist() == [False, False, True, True, True]


def test_every_layer_keeps_what_it_must():
    """H10: with min_units no draw empties a layer."""
    grain = PerWeight(LENET, least=3)
    drawn = thin(grain, np.full(grain.count, 0.5, np.float32), 0.0005, rng())
    assert min(grain.sizes(drawn.mask)) == 3
    assert empty_layers(LENET, grain.expand(drawn.mask)) == 0
    loose = PerWeight(LENET)
    kept = loose.expand(thin(loose, np.full(loose.count, 0.5, np.float32), 1e-5, rng()).mask)
    assert empty_layers(LENET, kept) >= 2  # four weights are left at most


# --- the gradient of the masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "factors"),
    [
        (0.5, [0, 0.125, 0.15625, 0.1640625, 0.166015625]),
        (0.9, [0, 0.081, 0.14661, 0.1997541, 0.242800821]),
    ],
)
def test_factor_table(p, factors):
    given_draws = [float(slope(torch.tensor(p, dtype=torch.float64), n)) for n in range(5)]
    assert given_draws == pytest.approx(factors, abs=1e-9)


def test_recursion_of_the_derivative():
    """Check 4: D_n = p (1 + p D_{n-1}), times p (1 - p)."""
    for p in torch.linspace(0.1, 0.9, 9, dtype=torch.float64):
        derivative = torch.zeros((), dtype=torch.float64)
        for n in range(1, 11):
            derivative = p * (1 + p * derivative)
            assert abs(derivative - (p - p ** (2 * n + 1)) / (1 - p**2)) < 1e-12
            assert abs(derivative * p * (1 - p) - slope(p, n)) < 1e-12


def test_identity_surrogate():
    """Check 16."""
    half = torch.tensor(0.5)
    assert [float(slope(half, n, "identity")) for n in (1, 2, 3)] == [0.25, 0.375, 0.4375]


def mask_steps(exponent="draws", scaled=False, gamma=0.5):
    rules = ThinningRules(1, exponent, "fedpm", scaled)
    return MaskSteps(
        0,
        weights(4),
        rules,
        gamma,
        lambda child, parent: StepCost(1, 0, 10.0, 0),
        lambda: Fixed(U1, U2),
    )


def mask_gradient(steps, shrink, x=(1.0, 2.0, 3.0, 4.0)):
    """Gradient by s of sum_j c_j w_j, and the effective w, after the draws U1, U2 and the shrink draw."""
    w = torch.cat([torch.tensor(x), torch.zeros(4), torch.zeros(4)]).requires_grad_(True)
    computing = steps.effective(w, Fixed(U1, U2, shrink))
    (gradient,) = torch.autograd.grad(
        (computing * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum(), w
    )
    assert not gradient[:4].any()
    assert not gradient[8:].any()
    return gradient[4:8].tolist(), computing.detach().tolist()


@pytest.mark.parametrize(
    ("shrink", "child"), [([1, 1, 1, 0.2], [0, 0, 0, 4]), ([1, 1, 1, 0.9], [0, 0, 0, 0])]
)
def test_the_gradient_belongs_to_the_parent_whatever_the_shrink_draw_left(shrink, child):
    """Check 3: position 4 alone has a gradient, g x 0.1640625 (n = 3); the printed indicator gives also 1 and 3."""
    gradient, computing = mask_gradient(mask_steps(), shrink)
    assert computing == child
    assert gradient == [0, 0, 0, 1000 * 4 * 0.1640625]


def test_the_printed_exponent_counts_survivals():
    """E4: a candidate that the shrink draw removed has n - 1."""
    assert mask_gradient(mask_steps("survivals"), [1, 1, 1, 0.2])[0][3] == 4000 * 0.1640625
    assert mask_gradient(mask_steps("survivals"), [1, 1, 1, 0.9])[0][3] == 4000 * 0.15625


def test_the_scaler_multiplies_what_the_child_keeps():
    """H7b: one of four weights is kept, so that it counts twice; so does its gradient."""
    gradient, computing = mask_gradient(mask_steps(scaled=True), [1, 1, 1, 0.2])
    assert computing == [0, 0, 0, 8]
    assert gradient[3] == 2 * 4000 * 0.1640625


def test_what_a_device_counts_in_its_mask_steps():
    """The record: n of the upload, draws and cost of a mean step; the upload has no shrink draw."""
    steps = mask_steps()
    start = torch.zeros(12)
    w = steps.begin(start)
    for _ in range(2):
        steps.effective(w, Fixed(U1, U2, U1))
    after = steps.finish([w])
    assert after[4:8].tolist() == [1, 0, 1, 2]
    assert Record(*after[8:].tolist()) == Record(draws=2, draws_per_step=3, flops=10, weights=1)
    w = steps.begin(start)  # a job may run twice
    steps.effective(w, Fixed([0.6, 0.7, 0.1, 0.4], U1))
    assert Record(*steps.finish([w])[8:].tolist()) == Record(
        draws=2, draws_per_step=2, flops=10, weights=1
    )
    assert not start.any()


def test_saturated_logits_still_leave_at_times():
    """H12: p stays below 1, so that thinning comes to an end."""
    p = probability(torch.tensor([1e9, 40.0, 0.0, -1e9]))
    assert p[0] == p[1] < 1
    assert p[3] > 0
    assert 1 - float(p[0]) == pytest.approx(1e-6, rel=0.1)


# --- the posterior ---------------------------------------------------------------------------------------------------


def test_posterior_of_one_device():
    """Check 2."""
    prior = Beta(np.full(4, 2.0), np.full(4, 2.0))
    after = prior.counted([(np.array([1, 0, 1, 2]), 2)])
    assert after.alpha.tolist() == [3, 2, 3, 4]
    assert after.beta.tolist() == [3, 3, 3, 2]
    assert after.mode().tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 2, 3 / 4])
    assert prior.mode().tolist() == [0.5] * 4


def test_a_literal_device_of_full_capacity_tells_nothing():
    """E1: n = 0, m = 0 adds neither a success nor a failure."""
    prior = Beta(np.full(2, 2.0), np.full(2, 2.0))
    after = prior.counted([(np.zeros(2), 0)])
    assert (after.alpha == 2).all()
    assert (after.beta == 2).all()


def test_unbiased_server_rate():
    """Check 5."""
    small = unbiased_rate(np.array([0.0, 1, 2, 3, 4]), 4, 2)
    assert small.tolist() == pytest.approx([0, 2, 1.2, 1, 1])
    large = unbiased_rate(np.array([1.0, 2, 5, 10, 20, 25, 50]), 100, 10)
    assert large.tolist() == pytest.approx(
        [10, 5.2381, 2.4024, 1.4936, 1.1051, 1.0503, 1.0006], abs=5e-5
    )


def test_expected_holders():
    """H8: p^n summed over the devices; at p = 1/2 budgets of 1, 1/4, 1/4, 1/16 take 1, 2, 2 and 4 draws."""
    holders = expected_holders(np.full(8, 0.5, np.float32), [1, 0.25, 0.25, 0.0625])
    assert holders.tolist() == pytest.approx([1 / 2 + 2 / 4 + 1 / 16] * 8)


def test_mean_over_random_holders():
    """Check 6, the lemma (12)-(14): a = 2, q = 1/2, e = 2, 4 gives 2.25 = 0.75 x 3."""
    means = []
    for masks in product([False, True], repeat=2):
        sent = [
            Sent(torch.tensor([e]), torch.tensor([m]))
            for e, m in zip((2.0, 4.0), masks, strict=True)
        ]
        means.append(float(mean_over_holders(torch.zeros(1), sent, [1, 1])))
    assert np.mean(means) == 2.25


def test_mean_of_differences_over_holders():
    """Check 7, from x = [1, 1, 1]: [3, 4, unchanged]."""
    x = torch.ones(3)
    sent = [
        Sent(x + torch.tensor([2.0, 4.0, 9.0]), torch.tensor([True, True, False])),
        Sent(x + torch.tensor([4.0, 9.0, 9.0]), torch.tensor([True, False, False])),
    ]
    assert (mean_over_holders(x, sent, [1, 1]) - x).tolist() == [3, 4, 0]


# --- bits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draws", "raw", "bit"), [(1, 430_500, 1), (2, 861_000, 1.5), (4, 1_291_500, 1.875)]
)
def test_bits_of_survival_counts_at_one_half(draws, raw, bit):
    """Check 17 and the table of section 5: d (2 - 2^(1-n)) bits at p = 1/2."""
    exact = np.concatenate(
        [np.full(2 ** (draws - 1 - min(m, draws - 1)), m) for m in range(draws + 1)]
    )
    assert np.bincount(exact).tolist()[-1] == 1
    assert count_bits(exact, draws, "entropy") / len(exact) == pytest.approx(bit, abs=1e-12)
    grain = PerWeight(LENET)
    drawn = thin(grain, np.full(grain.count, 0.5, np.float32), 1.001 * 2.0**-draws, rng())
    assert drawn.draws == draws
    assert count_bits(drawn.survived, draws, "raw") == raw
    assert count_bits(drawn.survived, draws, "entropy") == pytest.approx(430_500 * bit, rel=0.002)


def test_raw_bits_of_six_draws():
    assert count_bits(np.zeros(430_500, int), 6, "raw") == 1_291_500


@pytest.mark.parametrize(("gamma", "bits"), [(1 / 4, 349_255), (1 / 16, 145_203), (1 / 64, 49_988)])
def test_bits_of_a_mask(gamma, bits):
    kept = int(gamma * 430_500)
    assert mask_bits(430_500, kept, "entropy") == pytest.approx(
        bits, abs=6
    )  # gamma d rounded down: log2(63) = 6 bit
    assert mask_bits(430_500, kept, "bitmap") == 430_500
    assert mask_bits(430_500, kept, "seed") == 64
    assert mask_bits(430_500, kept, "none") == 0


# --- extraction ------------------------------------------------------------------------------------------------------


def few_values(grain, seed=0):
    """p with massive ties, as after counts, and weights."""
    dice = np.random.default_rng(seed)
    return dice.integers(1, 9, grain.count).astype(np.float32) / 10, dice.normal(
        size=grain.layout.size
    )


def test_sizes_of_topk_on_lenet_and_nested():
    """Check 12."""
    grain = PerWeight(LENET)
    p, w = few_values(grain)
    assert grain.total == 430_500
    chosen = {gamma: grain.largest(p, w, gamma) for gamma in (1, 1 / 4, 1 / 16, 1 / 64, 0.3)}
    assert [int(chosen[g].sum()) for g in (1, 1 / 4, 1 / 16, 1 / 64)] == [
        430_500,
        107_625,
        26_906,
        6_726,
    ]
    for small, large in pairwise(sorted(chosen)):
        assert (chosen[small] <= chosen[large]).all()
    assert [grain.largest_of_each(p, w, 1 / 16)[piece].sum() for piece in grain.layers] == [
        31,
        1562,
        25000,
        312,
    ]


def test_ties_go_to_the_larger_weight_then_to_the_lower_index():
    """H9."""
    p, w = np.array([0.2, 0.5, 0.5, 0.5, 0.9]), np.array([9, -1, 1, 3, 0])
    assert weights(5).largest(p, w, 0.4).tolist() == [False, False, False, True, True]
    assert weights(5).largest(p, w, 0.6).tolist() == [False, True, False, True, True]


def test_topk_that_no_layer_loses():
    """H10, and the general order is the quick one."""
    grain, loose = PerWeight(LENET, least=2), PerWeight(LENET)
    p, w = few_values(grain)
    p[grain.layers[0]] = 0.05
    assert not loose.largest(p, w, 1 / 64)[loose.layers[0]].any()
    kept = grain.largest(p, w, 1 / 64)
    assert kept[grain.layers[0]].sum() == 2
    assert kept.sum() == 6_726
    general = super(PerWeight, loose).largest(p, w, 0.1)
    assert (general == loose.largest(p, w, 0.1)).all()


def test_a_budget_just_below_a_whole_number_is_that_number():
    assert 0.29 * 100 < 29
    assert weights(100).room(0.29) == 29


def test_scale_makes_up_for_the_share_of_a_layer():
    """H7b: 1/4 of the first convolution's weights is kept, all of the others."""
    grain = PerWeight(LENET)
    chosen = np.ones(grain.count, bool)
    chosen[grain.layers[0]] = np.arange(500) % 4 == 0
    factor = scale(grain, grain.expand(chosen))
    assert (factor[:500] == 2).all()
    assert (factor[500:] == 1).all()


# --- units -----------------------------------------------------------------------------------------------------------

SHAPES = {
    "digits-cnn": (1, 8, 8),
    "spafl-conv4": (3, 32, 32),
    "resnet18": (3, 32, 32),
    "shakespeare-lstm": (80,),
}


@pytest.mark.parametrize("name", SHAPES)
def test_unit_submodels_are_dense_fit_and_can_be_read_back(name):
    """E13: the size is that of the smaller dense tensors, the output layer is whole, every layer keeps a unit."""
    layout = build(name, SHAPES[name], 10).layout
    grain = PerUnit(layout)
    p = np.full(grain.count, 0.6, np.float32)
    drawn = thin(grain, p, 0.1, rng())
    kept = grain.expand(drawn.mask)
    assert all(drawn.mask[piece].any() for piece in grain.layers)
    assert (grain.choice_of(kept) == drawn.mask).all()
    assert (
        grain.size(drawn.mask)
        == sum(int(kept[slot.slice].sum()) for slot in grain.tensors)
        <= 0.1 * grain.total
    )
    output = next(slot for slot in reversed(layout.slots) if slot.kind == "weight")
    assert kept[output.slice].reshape(output.shape).any(axis=1).all()
    assert grain.total == sum(slot.size for slot in layout.slots if slot.kind == "weight")


def test_largest_units_are_the_most_that_fit():
    layout = build("digits-cnn", (1, 8, 8), 10).layout
    grain = PerUnit(layout)
    p, w = np.random.default_rng(0).permutation(grain.count) / 100, np.ones(layout.size)
    small, large = grain.largest(p, w, 0.1), grain.largest(p, w, 0.5)
    assert (small <= large).all()
    assert grain.fits(small, 0.1)
    needed = [piece.start + int(np.argmax(p[piece])) for piece in grain.layers]
    assert small[needed].all()
    left = np.setdiff1d(np.flatnonzero(~small), needed)
    more = small.copy()
    more[left[np.argmax(p[left])]] = True
    assert not grain.fits(more, 0.1)


def test_a_budget_below_one_unit_per_layer_is_refused():
    grain = PerUnit(build("digits-cnn", (1, 8, 8), 10).layout)
    with pytest.raises(MethodError, match="has at least 32 of"):
        grain.largest(np.full(grain.count, 0.5), np.ones(grain.layout.size), 0.001)


@pytest.mark.parametrize("name", SHAPES)
def test_differentiable_expansion_is_the_expansion(name):
    layout = build(name, SHAPES[name], 10).layout
    for grain in (PerUnit(layout), PerWeight(layout)):
        chosen = np.random.default_rng(1).random(grain.count) < 0.5
        factors = spread(grain, torch.from_numpy(chosen).float())
        assert (factors.numpy() == grain.expand(chosen)).all()


def test_gradient_of_a_unit_gathers_its_weights_at_both_ends():
    """d sum(M w) / d m_u is the sum of w over what leaving the unit out would take away: its row and its column."""
    layout = build("digits-cnn", (1, 8, 8), 10).layout
    grain = PerUnit(layout)
    chosen = torch.ones(grain.count, requires_grad=True)
    w = torch.from_numpy(np.random.default_rng(2).normal(size=layout.size))
    (gradient,) = torch.autograd.grad((spread(grain, chosen) * w).sum(), chosen)
    for unit in (0, 9, grain.count - 1):
        one = np.ones(grain.count, bool)
        one[unit] = False
        without = grain.expand(one)
        assert float(gradient[unit]) == pytest.approx(
            float(w[~torch.from_numpy(without)].sum()), rel=1e-4
        )


def test_scale_of_unit_submodels_counts_the_inputs_that_are_left():
    """Half of conv1's units: conv2's rows lose half of their inputs, conv1's rows nothing."""
    layout = build("digits-cnn", (1, 8, 8), 10).layout
    grain = PerUnit(layout)
    chosen = np.ones(grain.count, bool)
    chosen[:4] = False
    named = layout.named(scale(grain, grain.expand(chosen)))
    assert (named["conv1.weight"] == 1).all()
    assert named["conv2.weight"] == pytest.approx(2**0.5)
    assert (named["linear1.weight"] == 1).all()


def test_lengths_of_blocks_and_repeats():
    slots = {slot.name: slot for slot in build("shakespeare-lstm", (80,), 10).layout.slots}
    recurrent = next(slot for slot in slots.values() if slot.shape == (1024, 256))
    group = recurrent.axes[0].group
    assert lengths(recurrent.shape, recurrent.axes, {group: 3})[0] == 12

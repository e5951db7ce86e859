"""FedLPS: training, sending, aggregation."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fl.contracts import Trained
from fl.errors import MethodError
from fl.evaluation.evaluate import evaluate
from fl.method_base.aggregation import mean_over_holders
from fl.method_base.method import check
from fl.methods import resolve
from fl.models.layers.learned_layers import Linear
from fl.training import local_sgd as local
from tests.fl.conftest import view_of
from tests.fl.methods.fedlps.one_round import jobs, played

LR = 0.05


PLAIN = {"mu": 0.0, "lam": 0.0}


HALF = {"ratio": "fixed", "width": 0.5}


def four_weights(tiny_bench, **params):
    """A method on x -> (four hidden units of one weight each) -> two classes, and a state with all
    weights 1.
    """
    bench = tiny_bench((Linear(1, 4, bias=False), Linear(4, 2, bias=False)), [[1.0], [1.0]], [0, 1])
    method = bench.method("fedlps", **params)
    state = method.start()
    return method, replace(state, w=torch.where(method.shared_mask, 1.0, 0.0)), bench


def ended(device, first, pattern):
    """An update of a device that ended with these four weights and kept these units."""
    w = torch.ones(4 + 8 + 2 * 4)
    w[:4], w[-4:] = torch.tensor(first), torch.tensor(pattern)
    trained = Trained(w, torch.ones(len(w), dtype=torch.bool), 0.5, 0.5)
    return SimpleNamespace(job=SimpleNamespace(device=device), result=lambda: trained)


@pytest.mark.slow
def test_the_whole_model_without_regularisers_is_fedavg_bit_for_bit(bench):
    ours = bench.method("fedlps", lr=LR, ratio="capability", **PLAIN)  # s = z = 1
    theirs = bench.method("fedavg", lr=LR, weighting="samples")
    a, b = ours.start(), theirs.start()
    for _ in range(3):
        a, b = bench.round(ours, a), bench.round(theirs, b)
    assert torch.equal(a.w[: len(b.w)], b.w)
    assert not torch.equal(b.w, theirs.start().w)
    assert torch.equal(ours.probes(a)["global"], a.w)


@pytest.mark.parametrize("mode", ["row", "structural"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_weight_that_is_left_out_keeps_its_stored_value(bench, mode, momentum):
    """One step more: what the scores drop before it does not move in it, whatever decay, pull and
    momentum say.
    """
    settings = {"weight_decay": 0.1, "momentum": momentum, "prune_mode": mode, **HALF}
    stored = []
    for steps in (6, 7):
        method = bench.method("fedlps", lr=LR, local_steps=steps, **settings)
        job = jobs(method, method.start(), view_of(bench.task), [0])[0]
        stored.append(local.run(bench.task, replace(job, finish=None)).w)
    units = method.patterns.units
    held = units.spread(units.top(units.scores(stored[0]), 0.5)) > 0
    before, after = map(units.weights, stored)
    assert torch.equal(before[~held], after[~held])
    assert (before != after)[held].float().mean() > 0.9
    moved_before = before != method.start().w[: len(before)]
    assert bool(moved_before[~held].any())  # some of them were trained in an earlier step


def test_a_unit_that_is_never_kept_ends_where_it_began(bench):  # FedLPS, eq. (9)
    method = bench.method("fedlps", lr=LR, pattern="ordered", mu=1.0, weight_decay=0.1, **HALF)
    state = method.start()
    job = jobs(method, state, view_of(bench.task), [0])[0]
    trained = local.run(bench.task, replace(job, finish=None))
    held = method.patterns.held(trained.w)
    assert torch.equal(trained.w[~held], state.w[~held])
    assert not torch.equal(trained.w[held], state.w[held])


def test_what_is_sent_and_what_stays(bench):
    method = bench.method("fedlps", lr=LR, **HALF)
    state = method.start()
    (job,) = jobs(method, state, view_of(bench.task), [1])
    trained = local.run(bench.task, job)
    sent, kept = method.encode(job, trained), method.local_part(trained)
    units = method.patterns.units
    pattern = units.top(units.scores(kept), 0.5)  # by the scores after the last step
    assert torch.equal(units.pattern(kept), pattern)
    assert torch.equal(sent.travels[: units.layout.size], units.spread(pattern) > 0)
    assert not sent.travels[units.layout.size :].any()  # scores and patterns stay at the device
    assert bool((kept[: units.layout.size][~sent.travels[: units.layout.size]] == 0).all())
    assert [int(part.sum()) for part in pattern.split(units.counts)] == [4, 8, 32]
    rows = method.task.layout.named(sent.travels)
    assert all(
        bool(rows[name].all())
        for name in rows
        if name.endswith("bias") or name.startswith("linear2")
    )
    assert method.task.accounting.weight_bits(int(sent.travels.sum())) == job.payload.bits_up


@pytest.mark.parametrize(
    ("samples", "expected"),
    [([5, 5], [0.5, 1.5, 1.25, 0.75]), ([15, 5], [0.25, 1.75, 1.125, 0.875])],
)
def test_differences_are_averaged_over_all_that_were_asked(
    tiny_bench, samples, expected
):  # FedLPS, eq. (13)
    method, state, bench = four_weights(tiny_bench)
    view = replace(view_of(bench.task), samples=np.array(samples))
    updates = [
        ended(0, [0.0, 2.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]),
        ended(1, [0.0, 0.0, 1.5, 0.5], [0.0, 0.0, 1.0, 1.0]),
    ]
    after = method.aggregate(state, view, updates)
    assert after.w[:4].tolist() == expected
    assert torch.equal(
        after.w[4:], state.w[4:]
    )  # the output layer came back unchanged; scores stay at home
    sent = [method.encode(update.job, update.result()) for update in updates]
    assert mean_over_holders(state.w, sent, [1.0, 1.0])[:4].tolist() == [
        0.0,
        2.0,
        1.5,
        0.5,
    ]  # HeteroFL's rule
    nobody = method.aggregate(state, view, updates[:1])
    assert nobody.w[2:4].tolist() == [1.0, 1.0]
    assert method.aggregate(state, view, []).w is state.w


def test_noise_is_added_only_where_it_is_asked_for(tiny_bench):
    method, state, bench = four_weights(tiny_bench, noise=0.001)
    update = ended(0, [1.0] * 4, [1.0] * 4)
    a, b = (method.aggregate(state, view_of(bench.task), [update]).w for _ in range(2))
    assert torch.equal(a, b)
    assert 1e-4 < float((a - state.w)[:12].std()) < 3e-3
    assert torch.equal(a[12:], state.w[12:])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ratio": "fixed"}, "width is none, but ratio is fixed"),
        ({"width": 0.5}, "width is not read where ratio is p-ucbv"),
        ({"ratio": "capability", "xi": 5.0}, "xi is not read where ratio is capability"),
        ({"pattern": "ordered", "q_init": "sorted"}, "q_init is not read where pattern is ordered"),
        ({"pattern": "random", "lam": 2.0}, "lam is not read where no scores are learned"),
        ({"lam": 0.0, "t_norm": True}, "t_norm is not read where lam is 0"),
        ({"mu": 0, "lam": 0, "reduction": "mean"}, "reduction is not read where mu and lam are 0"),
        ({"mu": 0, "pattern": "ordered", "reduction": "sum"}, "reduction is .* where mu is 0"),
    ],
)
def test_parameters_that_contradict_each_other(given, said):
    with pytest.raises(MethodError, match=said):
        check(resolve("fedlps"), given)


@pytest.mark.slow
def test_it_learns_and_unknown_devices_use_the_global_model(bench):
    """Half the units of three devices, after six rounds, against the majority label of the devices
    (0.44).
    """
    method = bench.method(
        "fedlps", lr=0.3, local_steps=30, mu=0.0, ratio="capability", participants=3
    )
    state = method.start()
    assert method.personalise(state, 0) is state.w
    first = played(bench, method, state, [1.0, 0.5, 0.5, 0.5])
    (never,) = set(range(4)) - set(first.local)
    assert method.personalise(first, never) is first.w
    state = first
    for _ in range(5):
        state = played(bench, method, state, [1.0, 0.5, 0.5, 0.5])
    scores = evaluate(bench.task, method, state)
    assert scores.accuracy.mean() > 0.8
    assert set(scores.measures) == {"accuracy global", "mean ratio", "never trained"}


def test_a_device_uses_its_own_model_once_it_was_wide_enough(bench):
    """The released rule: models of small shares are not used, and scores always stay."""
    fixed = {"ratio": "fixed", "width": 0.25, "use_above": 0.25, "local_steps": 2}
    method, state = bench.play("fedlps", rounds=1, **fixed)
    assert all(torch.equal(method.personalise(state, k), state.w) for k in range(4))
    wide = bench.method("fedlps", **(fixed | {"width": 0.5}))
    after = bench.round(wide, state)
    assert torch.equal(wide.personalise(after, 1), after.local[1])
    again = bench.round(method, after)
    shared = method.shared_mask
    assert torch.equal(again.local[1][shared], after.local[1][shared])  # the wide one, kept
    assert not torch.equal(again.local[1][~shared], after.local[1][~shared])  # with new scores
    assert torch.equal(method.personalise(again, 1), again.local[1])


def test_a_device_uses_its_own_model_also_after_a_failure_of_the_server(bench):
    method, state = bench.play(
        "fedlps", rounds=1, ratio="fixed", width=0.5, use_above=0.25, local_steps=2
    )
    again = method.recovered(method.start(), state)
    assert torch.equal(method.personalise(again, 1), state.local[1])

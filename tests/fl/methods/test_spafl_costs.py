"""Traffic and work of SpaFL."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.contracts import Trained
from tests.fl.conftest import view_of


def bits_of(bench, name, rounds=500, **params):
    """Bits of so many rounds like the first, of ten devices, both ways."""
    method = bench.method(name, participants=10, **params)
    state = method.start()
    jobs = bench.jobs(method, state, devices=method.select(state, view_of(bench.task)))
    assert len(jobs) == 10
    return rounds * sum(job.payload.bits_down + job.payload.bits_up for job in jobs)


@pytest.mark.parametrize(
    ("name", "params", "bits"),
    [
        ("spafl", {"delta": "broadcast"}, 185_600_000),  # Table 2
        ("spafl", {"delta": "since_last"}, 185_600_000),
        ("spafl", {"importance_update": False}, 185_600_000),
        ("spafl", {"frozen_weights": True}, 185_600_000),
        ("spafl", {}, 278_400_000),
        ("spafl", {"delta": "broadcast", "threshold_bits": 8}, 46_400_000),
        ("local", {}, 0),
        ("fedavg", {"local_epochs": 5}, 137_760_000_000),  # the paper prints 133.8 Gbit
    ],
)
def test_traffic(lenet, name, params, bits):
    assert bits_of(lenet, name, **params) == bits


def test_flops(lenet):
    """3 passes, 5 epochs, 600 samples, 2,293,000 multiply-adds; and the last term of (50), 1.5 d
    per epoch.
    """
    method = lenet.method("spafl", local_epochs=5)
    (stage,) = method.stages(0, 0.0)
    cost = method.rows.cost(lenet.task.architecture, np.ones(4), lenet.task.accounting)
    assert (
        lenet.task.accounting.work(cost, method.steps(0), method.samples_per_step(0)).flops
        == 2 * 20_637_000_000
    )
    assert stage.work.flops == 2 * (20_637_000_000 + 1.5 * 430_500 * 5)
    assert stage.work.weight_steps == 430_500 * 50
    fedavg = lenet.method("fedavg", local_epochs=5)
    assert fedavg.stages(0, 0.0)[0].work.flops == 2 * 20_637_000_000


def test_what_is_charged_is_the_mean_over_the_steps(lenet):
    """Rows of conv2 (1,600,000 of 2,293,000 multiply-adds) live in a quarter of the 50 steps."""
    method = lenet.method("spafl", local_epochs=5)
    (job,) = lenet.jobs(method, method.start(), devices=[0])
    assert job.stages is None
    collected = torch.full((580,), 50.0)
    collected[20:70] = 12.5
    (stage,) = method.charged(job, Trained(None, None, 0.0, collected=collected))
    upkeep = 1.5 * 430_500 * 5
    assert stage.work.flops == pytest.approx(2 * (9000 * (2_293_000 - 0.75 * 1_600_000) + upkeep))
    assert stage.work.weight_steps == pytest.approx(50 * (430_500 - 0.75 * 25_000))


def test_the_plan_counts_the_rows_that_live_at_the_start(lenet):
    """Half of the dense neurons (400,000 multiply-adds) get a threshold above every mean, conv1 all
    of them.
    """
    method = lenet.method("spafl", local_epochs=5)
    state, view, two = method.start(), view_of(lenet.task), np.array([3, 8])
    dense = method.demand(state, view, two)
    assert np.array_equal(dense.work_prunable.flops, [method.stages(0, 0.0)[0].work.flops] * 2)
    assert np.array_equal(
        dense.work_prunable.flops, method.demand(None, view, two).work_prunable.flops
    )
    w = state.w.clone()
    tau = method.rows.thresholds(w)
    tau[70:320], tau[:20] = 0.9, 0.9  # a layer that died computes again in the first step
    pruned = method.demand(replace(state, w=w), view, two)
    saved = dense.work_prunable.flops - pruned.work_prunable.flops
    assert saved.tolist() == pytest.approx([2 * 9000 * 200_000] * 2)
    assert (pruned.rho_min == 0).all() and (pruned.bits_prunable == 580 * 32).all()
    assert (pruned.bits_down == 2 * 580 * 32).all()


def test_planning_changes_nothing_at_the_device(bench):
    """Its thresholds would begin anew in the first step; until then they are what they are."""
    method = bench.method("local")
    own = method.start().w.clone()
    method.rows.thresholds(own)[:8] = 0.9
    state = replace(method.start(), local={1: own.clone()})
    method.demand(state, view_of(bench.task), np.array([1]))
    assert torch.equal(state.local[1], own)

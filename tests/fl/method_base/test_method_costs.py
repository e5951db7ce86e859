"""Demands, plans and charges of methods."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Grant, View
from fl.method_base.method import bind
from fl.methods import available, resolve
from fl.task import LearningTask
from tests.fl.conftest import Bench, view_of


def demand_of(bench, name, accounting=None, **params):
    task = (
        bench.task
        if accounting is None
        else LearningTask(bench.task.architecture, bench.task.data, 16, Seeds(3), accounting)
    )
    method = bind(resolve(name), task, params)
    view = View(
        0, 0.0, np.arange(4), np.ones(4), np.ones(4), task.samples, 1.0, np.ones(4), np.ones(4)
    )
    return method, method.demand(None, view, np.array([1, 3]))


READS = {name: ["mask_overhead", "sparse_efficiency"] for name in ("liu", "pruning-only", "fedspa")}
READS |= {"cs": ["mask_overhead"], "fedlps": ["mask_overhead"], "fedpm": ["sparse_efficiency"]}
READS |= {
    "fedmap": ["sparse_efficiency"],
    "fedp3": ["mask_overhead"],
    "lotteryfl": ["mask_overhead", "sparse_efficiency"],
}


def charged_at(bench, name, **accounting) -> str:
    """All that round 1 costs at half capability and half budget, before anything is trained."""
    task = replace(bench.task, accounting=Accounting(**accounting))
    method, half = Bench(task).method(name), np.full(task.devices, 0.5)
    state, view = method.start(), replace(view_of(task, 1), capability=half, model_budget=half)
    job = method.configure(state, view, Grant(0, 0.1, 0.5, 1.0, 1.0))
    return repr((method.demand(state, view, np.arange(4)), job.stages, job.payload))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.floats(0, 1),
    st.sampled_from(["liu", "pruning-only"]),
    st.sampled_from(["none", "bitmap"]),
    st.floats(0, 1),
)
def test_demand_is_the_charge_at_every_ratio(bench, rho, name, overhead, efficiency):
    method, d = demand_of(
        bench, name, Accounting(mask_overhead=overhead, sparse_efficiency=efficiency)
    )
    for i, k in enumerate(d.devices):
        stages = method.stages(int(k), rho)
        for kind in ("weight_steps", "flops"):
            planned = getattr(d.work_fixed, kind)[i] + (1 - rho) * getattr(d.work_prunable, kind)[i]
            assert planned == pytest.approx(sum(getattr(s.work, kind) for s in stages), rel=1e-12)
        assert d.bits_fixed[i] + (1 - rho) * d.bits_prunable[i] == pytest.approx(
            method.payload(rho).bits_up, rel=1e-12
        )
    assert (d.rho_min.tolist(), d.rho_max.tolist()) == ([0, 0], [1, 1])


def test_liu_divides_into_q_G_and_A(bench):
    """q = 32 N_u, G = tau_u N_u, and the rest is unprunable: tau_v N_v + tau_hat N_u."""
    _, d = demand_of(bench, "liu", personal_steps=3, warmup_steps=2, global_steps=4, rho_max=0.8)
    assert d.bits_prunable.tolist() == [32 * 4810] * 2
    assert d.bits_fixed.tolist() == [0, 0]
    assert d.work_prunable.weight_steps.tolist() == [4 * 4810] * 2
    assert d.work_fixed.weight_steps.tolist() == [3 * 1248 + 2 * 4810] * 2
    assert d.rho_max.tolist() == [0.8, 0.8]


def test_the_plan_of_46_forgets_the_warm_up(bench):
    method, d = demand_of(bench, "liu", personal_steps=3, warmup_steps=2, count_warmup=False)
    assert d.work_fixed.weight_steps.tolist() == [3 * 1248] * 2
    assert "warm-up" in [s.name for s in method.stages(1, 0.5)]


@pytest.mark.parametrize("name", ["fedavg", "fedalt", "fedsim"])
def test_without_pruning_all_is_prunable_and_the_ratio_is_zero(bench, name):
    method, d = demand_of(bench, name)
    assert not d.bits_fixed.any()
    assert not d.work_fixed.weight_steps.any()
    assert d.work_prunable.weight_steps[0] == sum(
        s.work.weight_steps for s in method.stages(1, 0.0)
    )
    assert not d.rho_max.any()


def test_a_fixed_ratio(bench):
    method, d = demand_of(bench, "liu", rho=0.75)
    assert (d.rho_min.tolist(), d.rho_max.tolist()) == ([0.75] * 2, [0.75] * 2)
    assert 0.25 * d.bits_prunable[0] == pytest.approx(method.payload(0.75).bits_up)
    assert not d.work_fixed.flops.any()


def test_an_entropy_coded_mask_is_planned_with_its_bound(bench):
    method, d = demand_of(bench, "liu", Accounting(mask_overhead="entropy"))
    assert d.bits_fixed.tolist() == [4810, 4810]
    charged = method.payload(0.25).bits_up
    assert charged < d.bits_fixed[0] + 0.75 * d.bits_prunable[0]
    assert charged > 0.75 * d.bits_prunable[0]


@pytest.mark.slow
def test_costs_are_known_without_torch():
    code = """
import sys, numpy as np
from fl.contracts import View
from edgesim.seeds import Seeds
from fl.data.datasets import load, spread
from fl.method_base.method import bind, with_length
from fl.methods import available, resolve
from fl.models.architectures import build
from fl.task import LearningTask
data = spread(load("digits"), 3, Seeds(0), kind="dirichlet", alpha=1.0)
task = LearningTask(build("digits-cnn", data.input_shape, 10), data, 8, Seeds(0))
view = View(0, 0.0, np.arange(3), None, None, task.samples, 1.0, np.ones(3), np.full(3, 0.3))
for name in available():
    cls = resolve(name)
    bind(cls, task, with_length(cls, {}, 1, 3)).demand(None, view, np.arange(3))
print({"torch", "sklearn", "scipy"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("key", "value"), [("mask_overhead", "bitmap"), ("sparse_efficiency", 0.5)]
)
@pytest.mark.parametrize("name", available())
def test_a_key_that_changes_what_a_method_costs_is_one_that_it_says_it_reads(
    bench, name, key, value
):
    changes = charged_at(bench, name, **{key: value}) != charged_at(bench, name)
    assert not changes or key in bench.method(name).read_keys()
    assert changes == (key in READS.get(name, ()))

"""The methods: reductions to FedAvg (promise 6), what is charged and planned, parameters, selection, state."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from edgesim.contracts import View
from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.evaluate import evaluate
from fl.method import MethodError, State, bind, check, parameters
from fl.methods import available, describe, resolve
from fl.task import Task
from fl.trainer import Trainer

FEDAVG = {"local_steps": 3, "lr": 0.1}
PARTIAL = {"personal_steps": 3, "global_steps": 3, "personal_lr": 0.2, "global_lr": 0.1}
WHOLE = PARTIAL | {"personal_part": "none"}


def same(a: State, b: State) -> bool:
    arrays_a, arrays_b = a.to_arrays()[0], b.to_arrays()[0]
    return arrays_a.keys() == arrays_b.keys() and all(arrays_a[n].tobytes() == arrays_b[n].tobytes() for n in arrays_a)


# --- promise 6 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("fedalt", WHOLE),
        ("fedsim", WHOLE),
        ("liu", WHOLE | {"warmup_steps": 4}),
        ("liu", WHOLE | {"update": "simultaneous"}),
        ("pruning-only", FEDAVG | {"warmup_steps": 2}),
    ],
)
def test_nothing_personal_and_nothing_pruned_is_fedavg_to_the_byte(bench, name, params):
    _, fedavg = bench.play("fedavg", **FEDAVG)
    method, state = bench.play(name, rho=0.0, **params)
    assert same(state, fedavg)
    assert not torch.equal(state.w, method.start().w)


@pytest.mark.parametrize(("plain", "update"), [("fedalt", "alternating"), ("fedsim", "simultaneous")])
@pytest.mark.parametrize("warmup", [1, 5])
def test_nothing_pruned_is_personalisation_only(bench, plain, update, warmup):
    _, expected = bench.play(plain, **PARTIAL)
    _, state = bench.play("liu", rho=0.0, update=update, warmup_steps=warmup, **PARTIAL)
    assert same(state, expected)


def test_the_pruning_of_liu_without_a_personal_part_is_pruning_only(bench):
    _, a = bench.play("liu", rho=0.5, **WHOLE)
    _, b = bench.play("pruning-only", rho=0.5, **FEDAVG)
    assert same(a, b)


def test_methods_differ_where_they_should(bench):
    states = [
        bench.play(n, rho=r, **p)[1]
        for n, r, p in [("fedalt", 0, PARTIAL), ("fedsim", 0, PARTIAL), ("liu", 0.5, PARTIAL)]
    ]
    assert not same(states[0], states[1])
    assert not same(states[0], states[2])


# --- pruning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["alternating", "simultaneous"])
def test_kept_weights_travel_and_personal_ones_are_all_trained(bench, update):
    method = bench.method("liu", update=update, **PARTIAL)
    state = method.start()
    (job,) = bench.jobs(method, state, rho=0.7, devices=[2])
    done = Trainer(bench.task).submit([job])[0].result()
    personal, sent = torch.from_numpy(method.personal()), method.encode(job, done)
    assert int(sent.travels.sum()) == round(0.3 * 4810)
    assert not (sent.travels & personal).any()
    assert (done.w[~sent.travels & ~personal] == 0).all()
    assert (done.w[personal] != state.w[personal]).float().mean() > 0.5  # 0.3 if pruned too; dead units do not move


def test_every_device_starts_from_the_unpruned_model(bench):
    """A weight that device 0 prunes in one round may be kept by it in the next: u is received whole."""
    method, state = bench.play("liu", rounds=1, rho=0.9, global_lr=0.1, personal_lr=0.1)
    shared = torch.from_numpy(method.shared)
    assert (state.w[shared] != 0).float().mean() > 0.99
    assert torch.equal(method.personalise(state, 1)[shared], state.w[shared])


def test_late_devices_keep_their_personal_part(bench):
    method = bench.method("liu", **PARTIAL)
    state = method.start()
    updates = Trainer(bench.task).submit(bench.jobs(method, state, rho=0.5, devices=[0, 1]))
    view = View(0, 0.0, np.arange(4), np.ones(4), np.ones(4), bench.task.samples, 1.0)
    after = method.aggregate(method.retain(state, updates), view, updates[:1])
    assert sorted(after.local) == [0, 1]
    assert after.g == 1
    nobody = method.aggregate(method.retain(state, updates[:1]), view, [])
    assert torch.equal(nobody.w, state.w)
    assert nobody.g == 1


# --- what is planned -------------------------------------------------------------------------------------------------


def demand_of(bench, name, accounting=None, **params):
    task = (
        bench.task if accounting is None else Task(bench.task.architecture, bench.task.data, 16, Seeds(3), accounting)
    )
    method = bind(resolve(name), task, params)
    view = View(0, 0.0, np.arange(4), np.ones(4), np.ones(4), task.samples, 1.0)
    return method, method.demand(None, view, np.array([1, 3]))


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0, 1),
    st.sampled_from(["liu", "pruning-only"]),
    st.sampled_from(["none", "bitmap"]),
    st.floats(0, 1),
)
def test_demand_is_the_charge_at_every_ratio(bench, rho, name, overhead, efficiency):
    method, d = demand_of(bench, name, Accounting(mask_overhead=overhead, sparse_efficiency=efficiency))
    for i, k in enumerate(d.devices):
        stages = method.stages(int(k), rho)
        for kind in ("weight_steps", "flops"):
            planned = getattr(d.work_fixed, kind)[i] + (1 - rho) * getattr(d.work_prunable, kind)[i]
            assert planned == pytest.approx(sum(getattr(s.work, kind) for s in stages), rel=1e-12)
        assert d.bits_fixed[i] + (1 - rho) * d.bits_prunable[i] == pytest.approx(method.payload(rho).bits_up, rel=1e-12)
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
    assert d.work_prunable.weight_steps[0] == sum(s.work.weight_steps for s in method.stages(1, 0.0))
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


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("fedavg", {"lrr": 1}, r'lrr is no parameter of this method .*did you mean "lr"\?'),
        ("fedavg", {"lr": 0}, r"lr is 0.0; allowed is a number > 0"),
        ("fedavg", {"lr": float("nan")}, "lr is nan"),
        ("fedavg", {"lr": "fast"}, "lr is 'fast'; allowed is a number > 0"),
        ("fedavg", {"local_steps": 2.5}, "local_steps is 2.5; allowed is a whole number >= 1"),
        ("fedavg", {"local_steps": True}, "local_steps is True"),
        ("fedavg", {"weighting": "size"}, "weighting is 'size'; allowed is uniform, samples"),
        ("fedavg", {"participants": 0}, "participants is 0; allowed is a whole number >= 1, or none"),
        ("fedalt", {"lr": 0.1}, "lr is no parameter"),
        ("fedsim", {"personal_steps": 2}, r"personal_steps is 2, .*global_steps \(5\)"),
        ("liu", {"update": "simultaneous", "global_steps": 1}, r"personal_steps is 5, .*global_steps \(1\)"),
        ("liu", {"rho": 0.9, "rho_max": 0.5}, r"rho is 0.9, more than rho_max \(0.5\)"),
        ("liu", {"rho_max": 1.5}, "rho_max is 1.5; allowed is a number >= 0 and <= 1"),
        ("liu", {"count_warmup": "no"}, "count_warmup is 'no'; allowed is true or false"),
    ],
)
def test_bad_parameters(bench, name, given, sentence):
    with pytest.raises(MethodError, match=sentence) as caught:
        bind(resolve(name), bench.task, given)
    assert str(caught.value) == f"{caught.value.key} {caught.value.problem}"


def test_good_parameters(bench):
    method = bench.method("liu", rho="none", participants=2, global_lr=1, rho_max=0.5)
    assert method.rho is None
    assert type(method.global_lr) is float
    assert method.rho_bounds() == (0.0, 0.5)
    assert check(resolve("fedsim"), {"personal_steps": 2, "global_steps": 2})["global_steps"] == 2


@pytest.mark.parametrize("name", available())
def test_every_method_says_what_it_is(name):
    line, source = describe(name)
    cls = resolve(name)
    assert line.endswith(".")
    assert source != "none given"
    assert "Departs from the paper" in cls.__doc__
    assert "What travels" in cls.__doc__
    for parameter in parameters(cls):
        assert parameter.meaning
        assert parameter.source
        assert parameter.check(parameter.default) == parameter.default


def test_resolve():
    assert available() == ["fedalt", "fedavg", "fedsim", "liu", "pruning-only"]
    assert resolve("pruning-only").__name__ == "PruningOnly"
    with pytest.raises(MethodError, match=r'name is "fedvag"; .*did you mean "fedavg"'):
        resolve("fedvag")


def test_costs_are_known_without_torch():
    code = """
import sys, numpy as np
from edgesim.contracts import View
from edgesim.seeds import Seeds
from fl.data import federated
from fl.method import bind
from fl.methods import resolve
from fl.models import build
from fl.task import Task
data = federated("digits", 3, Seeds(0), kind="dirichlet", alpha=1.0)
task = Task(build("digits-cnn", data.input_shape, 10), data, 8, Seeds(0))
method = bind(resolve("liu"), task, {})
method.demand(None, View(0, 0.0, np.arange(3), None, None, task.samples, 1.0), np.arange(3))
print({"torch", "sklearn", "scipy"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- who, and with what weight ---------------------------------------------------------------------------------------


def test_selection_is_uniform_keyed_and_of_idle_devices(bench):
    method = bench.method("fedavg", participants=2)
    idle = np.array([3, 0, 1])

    def chosen(g):
        return method.select(None, View(g, 0.0, idle, None, None, bench.task.samples, 1.0)).tolist()

    rounds = [chosen(g) for g in range(300)]
    assert rounds == [chosen(g) for g in range(300)]
    assert {tuple(r) for r in rounds} == {(0, 1), (0, 3), (1, 3)}
    assert min(rounds.count(pair) for pair in ([0, 1], [0, 3], [1, 3])) > 60  # 100 expected, 8 deviation
    assert bench.method("fedavg").select(None, View(0, 0.0, idle, None, None, None, 1.0)).tolist() == [0, 1, 3]


def test_weighting_by_samples(bench):
    method = bench.method("fedavg", weighting="samples", **FEDAVG)
    state = method.start()
    view = View(0, 0.0, np.arange(4), None, None, np.array([1, 0, 3, 0]), 1.0)
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=[0, 2]))
    expected = (updates[0].result().w.double() + 3 * updates[1].result().w.double()) / 4
    assert torch.allclose(method.aggregate(state, view, updates).w.double(), expected, atol=1e-7)


# --- evaluation and state --------------------------------------------------------------------------------------------


def test_one_pass_for_all_gives_the_numbers_of_one_by_one(bench):
    method, state = bench.play("fedavg", local_steps=20, lr=0.1)
    together = evaluate(bench.task, method, state)
    alone = bench.method("fedalt", personal_part="features")  # the same model, but held by each device
    personal = state.w[alone.personal_index]
    kept = State(state.g, state.w, dict.fromkeys(range(4), personal))
    apart = evaluate(bench.task, alone, kept)
    assert np.array_equal(together.accuracy, apart.accuracy)
    assert together.loss == pytest.approx(apart.loss, rel=1e-6)
    x, y = (
        torch.from_numpy(a[bench.task.data.test_index[2]]) for a in (bench.task.data.x_test, bench.task.data.y_test)
    )
    logits = bench.task.architecture.logits(state.w, x)
    assert together.accuracy[2] == pytest.approx((logits.argmax(1) == y).double().mean().item())
    assert together.loss[2] == pytest.approx(torch.nn.functional.cross_entropy(logits, y).item(), rel=1e-5)


def test_personal_models_are_tested_on_their_own_data(bench):
    method, state = bench.play("fedsim", rounds=12, personal_steps=10, global_steps=10, personal_lr=0.1, global_lr=0.1)
    own = evaluate(bench.task, method, state).accuracy
    rotated = State(state.g, state.w, {k: state.local[(k + 1) % 4] for k in range(4)})
    assert own.mean() > evaluate(bench.task, method, rotated).accuracy.mean() + 0.1


def test_a_device_without_test_data_has_no_score(tiny_bench):
    from fl.models import Linear

    bench = tiny_bench([Linear(1, 2)], [[1.0], [2.0]], [0, 1])
    bench.task.data.test_index[1] = np.array([], dtype=np.int64)
    method = bench.method("fedavg")
    scores = evaluate(bench.task, method, method.start())
    assert np.isfinite(scores.loss[0])
    assert np.isnan(scores.loss[1])
    assert np.isnan(scores.accuracy[1])


def test_state_goes_to_a_file_and_back(bench, tmp_path):
    _, state = bench.play("liu", rho=0.5, **PARTIAL)
    state = State(state.g, state.w, state.local, {"scores": torch.arange(3.0)})
    arrays, record = state.to_arrays()
    save_file(arrays, tmp_path / "state.safetensors")
    back = State.from_arrays(load_file(tmp_path / "state.safetensors"), record)
    assert same(state, back)
    assert back.g == 2
    assert list(back.local) == [0, 1, 2, 3]
    assert back.memo["scores"].tolist() == [0, 1, 2]
    method = bench.method("liu", **PARTIAL)
    assert same(bench.round(method, state, 0.5), bench.round(method, back, 0.5))

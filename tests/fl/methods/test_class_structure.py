"""How methods are built: few ancestors, and costs that do not depend on where a class lives."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from edgesim.runs.setup.make_method import check_hooks
from edgesim.seeds import Seeds
from fl.contracts import Stage, Work
from fl.data.datasets import load, spread
from fl.method_base.method import bind
from fl.methods import available, resolve
from fl.methods.fedavg import FedAvg
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.conftest import Bench, view_of


@dataclass(frozen=True, eq=False)
class Mine(FedAvg):
    """A user's class without hooks of its own."""


@dataclass(frozen=True, eq=False)
class Slower(FedAvg):
    """A user's class whose devices differ although they have equally many samples."""

    def stages(self, k, rho):
        return (Stage("train", Work(1.0 + k, 10.0)),)


@pytest.fixture(scope="module")
def bench():
    """Four devices with 40 samples each."""
    data = spread(
        load("digits"), 4, Seeds(3), kind="labels", labels_per_device=3, samples_per_device=40
    )
    return Bench(LearningTask(build("mlp", data.input_shape, 10), data, 16, Seeds(3)))


@pytest.mark.parametrize("name", available())
def test_a_method_has_at_most_four_ancestors(name):
    ancestors = resolve(name).__mro__[1:-1]
    assert len(ancestors) <= 4, [each.__name__ for each in ancestors]


@pytest.mark.parametrize("name", available())
def test_hooks_are_called_as_those_that_they_stand_for(name):
    check_hooks(name, resolve(name))


@pytest.mark.parametrize("name", available())
def test_devices_with_equally_many_samples_cost_the_same(bench, name):
    method = bench.method(name)
    assert method.cost_by_samples
    assert all(method.stages(k, 0.0) == method.stages(0, 0.0) for k in range(4))


def counting(monkeypatch, cls):
    """The devices that are asked for their stages."""
    asked, stages = [], cls.stages
    monkeypatch.setattr(cls, "stages", lambda self, k, rho: asked.append(k) or stages(self, k, rho))
    return asked


def test_a_trivial_subclass_of_a_user_is_priced_exactly_as_fedavg(bench, monkeypatch):
    asked = counting(monkeypatch, FedAvg)
    view, devices = view_of(bench.task), np.arange(bench.task.devices)
    found = []
    for cls in (FedAvg, Mine):
        method = bind(cls, bench.task, {})
        demand = method.demand(method.start(), view, devices)
        stages, payload = method.cost_columns(devices, np.zeros(len(devices)))
        columns = [demand.bits_prunable, demand.work_prunable.flops, demand.bits_down]
        columns += [stages[0].work.flops, stages[0].work.weight_steps, payload.bits_up]
        found.append((np.stack(columns).tolist(), list(asked)))
        asked.clear()
    assert found[0] == found[1]
    assert set(found[1][1]) == {0}  # the others have equally many samples


def test_a_trivial_subclass_of_a_user_orders_the_same_phases(bench):
    plain, mine = (bind(cls, bench.task, {}) for cls in (FedAvg, Mine))
    state = plain.start()
    for ours, theirs in zip(bench.jobs(plain, state), bench.jobs(mine, state), strict=True):
        (a,), (b,) = ours.phases, theirs.phases
        assert a.start is b.start and a.mask.equal(b.mask)
        assert replace(a, start=None, mask=None) == replace(b, start=None, mask=None)


def test_a_subclass_with_costs_of_its_own_is_asked_for_every_device(bench, monkeypatch):
    assert Mine.cost_by_samples and not Slower.cost_by_samples
    asked = counting(monkeypatch, Slower)
    devices = np.arange(bench.task.devices)
    method = bind(Slower, bench.task, {})
    stages, _ = method.cost_columns(devices, np.zeros(len(devices)))
    assert stages[0].work.weight_steps.tolist() == (1.0 + devices).tolist()
    assert asked == devices.tolist()

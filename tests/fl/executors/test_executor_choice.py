"""Which executor a name means."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fl.executors import executor_choice as executors
from fl.executors.batched import Batched, gradients_of
from fl.executors.cluster_training import ClusterTraining
from fl.executors.one_by_one import OneByOne
from fl.models.own_modules.own_module import ModuleArchitecture
from fl.objective import Objective
from fl.stacked_training.convolution_gradients import ConvolutionGradients
from fl.stacked_training.vmapped_gradients import VmappedGradients
from tests.fl.random_jobs import CNN, MLP, OTHER, task_of


def test_names():
    task = task_of(OTHER)
    chosen = [executors.choose(task, name, 2) for name in executors.NAMES]
    assert [(type(one), one.threads) for one in chosen] == [
        (OneByOne, 2),
        (OneByOne, 1),
        (OneByOne, 2),
        (Batched, 1),
        (ClusterTraining, 2),
    ]
    assert executors.choose(task, "pool", 3).name == "resident, 3 threads"
    with pytest.raises(
        ValueError, match='there is no executor "fast"; there are auto, resident, pool, batched, d'
    ):
        executors.choose(task, "fast")


def test_the_rule_of_auto():
    """Perceptrons and small CNNs are stacked, on a CPU all else is trained one by one; the cores
    decide only about threads.
    """
    small, cnn, other = task_of(MLP), task_of(CNN), task_of(OTHER)
    assert executors.arithmetic(small) == executors.arithmetic(cnn) == "stacked"
    assert executors.arithmetic(other) == "one by one"
    assert executors.arithmetic(replace(other, device="cuda")) == "stacked"
    assert executors.arithmetic(other, "batched") == "stacked"
    assert executors.arithmetic(small, "pool") == "one by one"
    for task in (small, cnn, other):  # workers of a cluster compute as this process would
        assert executors.arithmetic(task, "dask") == executors.arithmetic(task)
    for task, kind in ((small, Batched), (cnn, Batched), (other, OneByOne)):
        for threads in (1, 2):
            chosen = executors.choose(task, threads=threads)
            assert isinstance(chosen, kind) and chosen.threads == threads


def test_what_is_never_stacked_has_the_sums_of_one_by_one_under_every_name():
    """A summary said "stacked" of a module that its detours said was trained one by one."""
    task = task_of(MLP)

    def module():
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

    own = ModuleArchitecture("./net.py:Net", (1, 8, 8), 10, (), module)
    labels = np.zeros((5, 3), dtype=int)
    texts = replace(task.data, y_train=labels, y_test=labels)
    for change in ({"architecture": own}, {"objective": Objective(plain=False)}, {"data": texts}):
        changed = replace(task, **change)
        for name in executors.NAMES:
            for device in ("cpu", "cuda"):
                found = executors.arithmetic(replace(changed, device=device), name)
                assert found == "one by one"
        assert isinstance(executors.choose(changed), OneByOne)
        assert isinstance(executors.choose(changed, "batched"), Batched)  # which says so


def test_accelerators_are_told_to_repeat_themselves(monkeypatch):
    """Asked for before the first product there; never for the CPU, which needs none of it."""
    told = []
    monkeypatch.setattr(executors, "repeat_on_accelerators", lambda: told.append("told"))
    executors.choose(task_of(OTHER))
    assert told == []
    executors.choose(replace(task_of(OTHER), device="cuda"))
    assert told == ["told"]


def test_cnns_of_any_size_are_products_on_an_accelerator():
    """On a CPU only small ones; a stride is beyond the products anywhere."""
    large = task_of("liu-cnn", (1, 28, 28))
    for model, device, kind in (
        (task_of(CNN), "cpu", ConvolutionGradients),
        (large, "cpu", VmappedGradients),
        (large, "cuda", ConvolutionGradients),
        (task_of(OTHER), "cuda", VmappedGradients),
    ):
        assert gradients_of(replace(model, device=device)) is kind

"""What can be found out about the learning of a run without training: warnings and refusals."""

from __future__ import annotations

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.runs.setup.data_source import data_warnings
from edgesim.runs.setup.make_method import hook_warnings, sharing_warnings
from edgesim.runs.setup.setup import Setup
from fl.accounting import forward_flops
from fl.data.array_files import check_values, is_array_file
from fl.errors import ModelError
from fl.task import LearningTask


def learning_warnings(setup: Setup) -> list[str]:
    """What a user should know of how the data are divided, of the method and what it shares."""
    data = data_warnings(setup.scenario, setup.source.samples, setup.task.data)
    hooks = hook_warnings(setup.scenario.learning.method.name, type(setup.method))
    return [*data, *hooks, *sharing_warnings(setup.scenario, setup.method), *free_work(setup)]


def free_work(setup: Setup) -> list[str]:
    """The warning about a module whose training costs devices that count FLOPs nothing."""
    task = setup.task
    by_flops = np.isfinite(setup.fleet.flops_per_cycle)
    if forward_flops(task.architecture, task.accounting) > 0.0 or not by_flops.any():
        return []
    return [
        f"learning.model: {setup.scenario.learning.model} counts 0 FLOP, as only convolutions and "
        "products of matrices do, so that training takes no time and no energy; give devices a "
        "cpu.cycles_per_weight in place of flops_per_cycle"
    ]


def check_own_data(setup: Setup) -> None:
    """Find what a run would refuse of the values of the user's own samples, without a run.

    Raises:
        DataError: a value is not finite or on no such scale, or a code is negative; or they
            cannot be read.
        ModelError: a code is none that the model knows.
    """
    name, inputs = setup.scenario.learning.dataset, setup.scenario.learning.inputs
    own_file = setup.source.samples is not None and is_array_file(name)
    if setup.source.in_memory or (own_file and inputs == "bytes"):
        setup.task.data.x_train  # noqa: B018 (reads the samples)
    elif own_file:
        check_values(setup.scenario.folder / name)
    check_codes(setup.task)


def check_before_training(setup: Setup) -> None:
    """Find damaged images, and an accelerator that is absent, before the first round.

    Raises:
        ScenarioKeyError: torch cannot use the device.
        DataError: the images cannot be read.
        ModelError: a code is none that the model knows.
    """
    if setup.counts_only:
        return
    import torch

    name = setup.scenario.learning.device
    try:
        torch.zeros(1, device=name).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        problem = f"is {name}, which torch cannot use here: {reason}"
        raise ScenarioKeyError(("learning", "device"), problem) from error
    setup.task.data.x_train  # noqa: B018 (reads the images)
    check_codes(setup.task)


def check_codes(task: LearningTask) -> None:
    """Refuse codes beyond those of a shipped model, which has a vector for each class."""
    model, data = task.architecture, task.data
    if not data.text or not model.in_layers:
        return
    for name, codes in (("x_train", data.x_train), ("x_test", data.x_test)):
        if codes.max() >= model.classes:
            known = f"knows one code for each of the {model.classes} classes"
            problem = f"{known}, 0 to {model.classes - 1}, but {name} holds the code {codes.max()}"
            raise ModelError(
                f"model {model.name} {problem}; use fewer codes, or a model of your own"
            )

"""What a run learns: the model and the objective that a scenario names, on its divided data."""

from __future__ import annotations

from typing import Any

from edgesim.errors import ScenarioKeyError
from edgesim.extensions.entry_points import find_object
from edgesim.extensions.user_code import (
    code_path,
    guarded,
    lines_in,
    load_object,
    notes_of,
    user_files,
)
from edgesim.records.run_tables.table_columns import SCHEMAS
from edgesim.runs.setup.data_source import DataSource, divide_data
from edgesim.scenario.loader import Scenario
from edgesim.scenario.schema import ScenarioKeys
from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.errors import LearningError, ModelError
from fl.models import architectures
from fl.objective import CROSS_ENTROPY, ERRORS, LOSSES, Objective, PerSample
from fl.task import LearningTask

MODEL = ("learning", "model")
# Columns that `edgesim.load_run` and others may put beside those of a run; other keys have dots.
KEYS = frozenset(str(field.alias) for field in ScenarioKeys.model_fields.values())
TAKEN_FOR = {  # by whether samples are codes: how to give the others
    True: "whole numbers are codes; where they are none, give them as float32",
    False: "real numbers and bytes are no codes; give those as int64",
}
OF_SEVERAL_RUNS = ("bits", "ci95", "seeds", "std_devices")  # beside a metric in tables of a report


def find_model(scenario: Scenario, given: Any, allow_code: bool) -> Any | None:
    """The user's own model: a module, or what makes one; None: the scenario names a shipped one.

    Args:
        scenario: names a model or ``./file.py:name``.
        given: a `torch.nn.Module`, or what makes one, in place of the named model; None: none.
        allow_code: the user's code may run.

    Raises:
        ScenarioKeyError: the user's code may not run, or cannot be loaded.
    """
    name = scenario.learning.model
    own = given
    if own is None:
        own = find_object("models", scenario, name, MODEL, allow_code)
    if own is None:
        if scenario.learning.classifier is not None and name in architectures.MODELS:
            problem = f"is not read with the model {name}, whose roles are known; remove it"
            raise ScenarioKeyError(("learning", "classifier"), problem)
        return None
    if not callable(own):
        name = name if given is None else repr(given)[:80]
        raise ScenarioKeyError(MODEL, f"is {name}, which is no torch.nn.Module and makes none")
    return own


def own_architecture(scenario: Scenario, model: Any, data: Any) -> architectures.Architecture:
    """The user's module as a model of the data; traced once, which finds what is wrong with it."""
    from fl.models.own_modules.module_making import maker
    from fl.models.own_modules.own_module import ModuleArchitecture

    name, shape = scenario.learning.model, tuple(data.input_shape)
    architecture = ModuleArchitecture(
        name,
        shape,
        data.outputs,
        (),
        maker(model, shape, data.outputs),
        data.text,
        scenario.learning.classifier,
    )
    try:
        architecture.layout  # noqa: B018 (traces the module)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, LearningError):
            raise
        if "long" in str(error).lower():  # as torch calls int64 where a type does not fit
            error.add_note(TAKEN_FOR[data.text])
        if any(lines_in(error, path) for path in user_files(scenario)):
            raise
        problem = f"{type(error).__name__}: {error}".splitlines()[0] + notes_of(error)
        raise ModelError(f"model {name} fails on samples of {list(shape)}: {problem}") from error
    return architecture


def make_task(
    scenario: Scenario,
    seeds: Seeds,
    source: DataSource,
    model: Any | None,
    allow_code: bool,
) -> LearningTask:
    """The learning task: model, divided data, accounting.

    Args:
        scenario: the checked scenario.
        seeds: the random streams.
        source: the data.
        model: the user's own; None: the one that the scenario names.
        allow_code: loss and metric may be the user's own.
    """
    learning = scenario.learning
    divided: Any = divide_data(scenario, source.samples, seeds)  # `Unseen`: data not looked at
    if model is not None:
        architecture = own_architecture(scenario, model, divided)
    else:
        architecture = architectures.build(
            learning.model,
            divided.input_shape,
            divided.outputs,
            divided.text,
            None if source.samples is None else divided.at_every_step,
        )
    architecture.input_shapes  # noqa: B018 (raises where the model does not fit the images)
    accounting = Accounting(**scenario.accounting.model_dump())
    return LearningTask(
        architecture,
        divided,
        learning.batch_size,
        seeds,
        accounting,
        learning.device,
        objective=find_objective(scenario, bool(divided.classes), allow_code),
    )


def find_objective(scenario: Scenario, labels: bool, allow_code: bool) -> Objective:
    """What is minimised and measured.

    Args:
        scenario: names them, or leaves them to the kind of the data.
        labels: the data have class labels, and no real targets.
        allow_code: functions may be the user's own.

    Raises:
        ScenarioKeyError: there is no such loss, or it does not fit the data.
    """
    learning = scenario.learning
    if not labels and scenario.evaluate.targets not in ((), (0.8, 0.9)):
        problem = "are accuracies, which data with real targets do not have; remove them"
        raise ScenarioKeyError(("evaluate", "targets"), problem)
    name = learning.loss or (CROSS_ENTROPY if labels else "squared-error")
    loss = _measure(scenario, "loss", name, labels, allow_code)
    if learning.metric is None:
        return Objective(loss, name == CROSS_ENTROPY, labels)
    metric = _measure(scenario, "metric", learning.metric, labels, allow_code)
    column = learning.metric.rpartition(":")[2].replace("-", "_")
    if column in {*SCHEMAS["rounds"], *KEYS, *OF_SEVERAL_RUNS}:
        has = "has" if column in SCHEMAS["rounds"] else "of several runs has"
        problem = f"is {learning.metric}, but the table rounds {has} a column {column}; rename it"
        raise ScenarioKeyError(("learning", "metric"), problem)
    return Objective(loss, name == CROSS_ENTROPY, labels, metric, column)


def _measure(scenario: Scenario, key: str, name: str, labels: bool, allow_code: bool) -> PerSample:
    """A function (outputs, y) -> value of each sample, by name or from the user's file."""
    path = ("learning", key)
    own = load_object(scenario.folder, name, path, allow_code)
    if own is not None:
        if not callable(own):
            raise ScenarioKeyError(path, f"is {name}, which is no function of outputs and y")
        return guarded(own, path, name, code_path(scenario, name))
    if name not in LOSSES:
        problem = f"is {name}; allowed are {', '.join(LOSSES)} or ./file.py:function"
        raise ScenarioKeyError(path, problem)
    if (name in ERRORS) == labels:
        kind = "class labels" if labels else "real targets"
        problem = f"is {name}, which does not fit data with {kind}; remove it, or give a function"
        raise ScenarioKeyError(path, problem)
    return LOSSES[name]

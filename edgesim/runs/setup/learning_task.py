"""What a run learns: the data and the model of a scenario, by name, file or object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgesim.errors import RELATIVE, RunError, ScenarioKeyError
from edgesim.extensions.entry_points import find_object, guarded_object
from edgesim.extensions.user_code import lines_in, load_object, user_files
from edgesim.records.table_files import ROUNDS
from edgesim.runs.error_sentences import PartitionError, first_ten
from edgesim.scenario.learning.partition_schema import FilePartition, NaturalPartition
from edgesim.scenario.loader import Scenario
from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.data import array_files, datasets
from fl.data.given_partitions import surplus_clients
from fl.data.own_data import own_samples
from fl.data.samples import Federated, Samples, rescaled
from fl.errors import DataError, LearningError, ModelError
from fl.models import architectures
from fl.objective import CROSS_ENTROPY, ERRORS, LOSSES, Objective, PerSample
from fl.task import LearningTask
from fl.timing_only import Unseen, unseen

DATASET, MODEL = ("learning", "dataset"), ("learning", "model")
KEPT_DATA = "data.npz"  # in a run's folder: data that came from Python


@dataclass(frozen=True)
class DataSource:
    """A data set, and what its content follows from.

    Args:
        samples: before they are divided; None: there is no data set.
        files: that hold the data, or say who holds what.
        in_memory: the samples themselves have to be looked at.
        root: folder of the shipped data sets; None: EDGESIM_DATA.
    """

    samples: Samples | None
    files: tuple[Path, ...] = ()
    in_memory: bool = False
    root: str | Path | None = None


def find_data(scenario: Scenario, given: Any, allow_code: bool) -> DataSource:
    """The data set of a scenario.

    Args:
        scenario: names a shipped data set, a file, a folder or ``./file.py:function``.
        given: folder of the shipped data sets, or data of the user's own
            (`fl.data.own_data.own_samples`), which then take the place of the named ones.
        allow_code: the user's code may run.

    Raises:
        DataError: the data are missing, or something is wrong with them.
        ScenarioKeyError: the user's code may not run, or cannot be loaded.
    """
    name, folder = scenario.learning.dataset, scenario.folder
    if given is not None and not isinstance(given, str | Path):
        if scenario.learning.partition is None:
            problem = "is missing; write for instance partition: {kind: iid}"
            raise ScenarioKeyError(("learning", "partition"), problem)
        return DataSource(own_samples(given, "data"), _partition_file(scenario), in_memory=True)
    if given is not None and Path(given).is_file():
        problem = "a file; name it as learning.dataset, or give the folder of the shipped data sets"
        raise RunError(f"data is {given}, {problem}")
    if name == datasets.NONE or scenario.learning.partition is None:
        return DataSource(None, root=given)
    load = find_object("datasets", scenario, name, DATASET, allow_code)
    if load is not None:
        found = guarded_object(load, scenario, name)() if callable(load) else load
        return DataSource(own_samples(found, name), _partition_file(scenario), in_memory=True)
    if array_files.is_array_file(name):
        path = folder / name
        if not path.exists():
            problem = f"is {name}, but there is no file {path}; {RELATIVE}"
            raise ScenarioKeyError(DATASET, problem)
        files = (*array_files.array_paths(path), *_partition_file(scenario))
        return DataSource(array_files.read_array_files(path), files)
    files = (*datasets.locate(name, given), *_partition_file(scenario))
    return DataSource(datasets.load(name, given), files, root=given)


def _partition_file(scenario: Scenario) -> tuple[Path, ...]:
    """The file that says who holds what, if there is one."""
    partition = scenario.learning.partition
    if not isinstance(partition, FilePartition):
        return ()
    path = scenario.folder / partition.file
    if not path.is_file():
        problem = f"is {partition.file}, but there is no file {path}; {RELATIVE}"
        raise ScenarioKeyError(("learning", "partition", "file"), problem)
    return (path,)


def divide_data(scenario: Scenario, samples: Samples | None, seeds: Seeds) -> Federated | Unseen:
    """The data set and who holds what; without a data set D_k samples each, or one batch."""
    learning = scenario.learning
    if samples is None or learning.partition is None:
        size = learning.samples_per_device or learning.batch_size
        return unseen(learning.model, scenario.device_count, size)
    options = learning.partition.model_dump(exclude_none=True)
    if "file" in options:
        options["file"] = scenario.folder / options["file"]
    options |= {
        "samples_per_device": learning.samples_per_device,
        "validation": learning.validation,
    }
    try:
        samples = rescaled(samples, learning.inputs)
        divided = datasets.spread(samples, scenario.device_count, seeds, **options)
        if not any(map(len, divided.test_index)) and divided.held_out is None:
            raise DataError(
                "no device has a test sample, so that nothing can be evaluated; test samples go to "
                "the devices that train on their label, or are their client's, or as a file says"
            )
        return divided
    except DataError as error:
        raise PartitionError(str(error)) from error


def data_warnings(
    scenario: Scenario, samples: datasets.Samples | None, divided: Federated | Unseen
) -> list[str]:
    """What a user should know of how the data are divided, in a sentence each."""
    found = []
    if samples is not None and isinstance(scenario.learning.partition, NaturalPartition):
        owners = samples.owners
        found += [owners and surplus_clients(owners[0], scenario.device_count)]
    if isinstance(divided, Federated):
        found += [untested_devices(divided)]
    return [f"learning.partition: {sentence}" for sentence in found if sentence]


def untested_devices(divided: Federated) -> str | None:
    """A sentence about the devices without test samples; None where all have some."""
    untested = [k for k, index in enumerate(divided.test_index) if not len(index)]
    if not untested:
        return None
    have, them = ("has", "it") if len(untested) == 1 else ("have", "them")
    return (
        f"{len(untested)} of {len(divided.test_index)} devices {have} no test sample, and means of "
        f"loss and accuracy leave {them} out: {first_ten(untested)}"
    )


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
        if scenario.learning.classifier is not None:
            problem = f"is not read with the model {name}, whose roles are known; remove it"
            raise ScenarioKeyError(("learning", "classifier"), problem)
        return None
    if not callable(own):
        name = name if given is None else repr(given)[:80]
        raise ScenarioKeyError(MODEL, f"is {name}, which is no torch.nn.Module and makes none")
    return own


def own_architecture(scenario: Scenario, model: Any, data: Any) -> architectures.Architecture:
    """The user's module as a model of the data; traced once, which finds what is wrong with it."""
    from fl.models.own_module import ModuleArchitecture, maker

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
        of_user = any(lines_in(error, path) for path in user_files(scenario))
        if of_user or isinstance(error, LearningError):
            raise
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
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
    if column in ROUNDS:
        problem = f"is {learning.metric}, but the table rounds has a column {column}; rename it"
        raise ScenarioKeyError(("learning", "metric"), problem)
    return Objective(loss, name == CROSS_ENTROPY, labels, metric, column)


def _measure(scenario: Scenario, key: str, name: str, labels: bool, allow_code: bool) -> PerSample:
    """A function (outputs, y) -> value of each sample, by name or from the user's file."""
    path = ("learning", key)
    own = load_object(scenario.folder, name, path, allow_code)
    if own is not None:
        if not callable(own):
            raise ScenarioKeyError(path, f"is {name}, which is no function of outputs and y")
        guarded: PerSample = guarded_object(own, scenario, name)
        return guarded
    if name not in LOSSES:
        problem = f"is {name}; allowed are {', '.join(LOSSES)} or ./file.py:function"
        raise ScenarioKeyError(path, problem)
    if (name in ERRORS) == labels:
        kind = "class labels" if labels else "real targets"
        problem = f"is {name}, which does not fit data with {kind}; remove it, or give a function"
        raise ScenarioKeyError(path, problem)
    return LOSSES[name]

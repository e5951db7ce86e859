"""The data that a run learns from: by name, file or object, and divided among the devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.errors import RELATIVE, RunError, ScenarioKeyError, counted
from edgesim.extensions.entry_points import find_object, guarded_object
from edgesim.runs.error_sentences import PartitionError, first_ten
from edgesim.scenario.learning.partition_schema import FilePartition, NaturalPartition
from edgesim.scenario.loader import Scenario
from edgesim.seeds import Seeds
from fl.data import array_files, datasets
from fl.data.own_data import CHANNELS_LAST, channels_last, own_samples
from fl.data.partitions.given_partitions import surplus_clients
from fl.data.samples import Federated, Samples, rescaled
from fl.errors import DataError
from fl.timing_only import Unseen, unseen

DATASET = ("learning", "dataset")
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
    held = _partition_file(scenario)
    load = find_object("datasets", scenario, name, DATASET, allow_code)
    if load is not None:
        found = guarded_object(load, scenario, "datasets", name)() if callable(load) else load
        return DataSource(own_samples(found, name), held, in_memory=True)
    if array_files.is_array_file(name):
        path = folder / name
        if not path.exists():
            problem = f"is {name}, but there is no file {path}; {RELATIVE}"
            raise ScenarioKeyError(DATASET, problem)
        samples = array_files.read_array_files(path)
        if name == KEPT_DATA:  # goes by its content, as it did when Python gave it
            return DataSource(samples, held, in_memory=True)
        return DataSource(samples, (*array_files.array_paths(path), *held))
    files = (*datasets.locate(name, given), *held)
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
    samples = rescaled(samples, learning.inputs)
    try:
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
    found: list[str | None] = []
    if samples is not None and isinstance(scenario.learning.partition, NaturalPartition):
        owners = samples.owners
        found += [owners and surplus_clients(owners[0], scenario.device_count)]
    if isinstance(divided, Federated):
        found += [untested_devices(divided)]
    warnings = [f"learning.partition: {sentence}" for sentence in found if sentence]
    if samples is None:
        return warnings
    odd = [unlearned_labels(samples), pictures_channels_last(samples)]
    if scenario.learning.loss is None:  # who names a loss of targets means targets
        odd.append(labels_as_targets(samples))
    return [*warnings, *(f"learning.dataset: {sentence}" for sentence in odd if sentence)]


def labels_as_targets(samples: Samples) -> str | None:
    """A sentence about real targets that look like labels; None where none do, or are labels.

    They do where all of 0, 1, .. occur and nothing else, or where each row has a single 1.
    """
    y = samples.y_train
    if samples.classes:
        return None
    if y.shape[1] == 1:
        found = np.unique(y)
        alike = len(found) > 1 and np.array_equal(found, np.arange(len(found)))
        how = "y.astype(int)"
    else:
        alike = bool(((y == 0) | (y == 1)).all() and (y.sum(1) == 1).all())
        how = "y.argmax(1)"
    if not alike:
        return None
    return (
        "y_train holds what look like labels as real numbers, which are targets: the squared "
        f"error, and no accuracy; give labels as {how}, or name the loss in learning.loss"
    )


def pictures_channels_last(samples: Samples) -> str | None:
    """A sentence about pictures whose rows a model would take for channels; None elsewhere."""
    if samples.text or not channels_last(samples.input_shape):
        return None
    shape = ", ".join(map(str, ("N", *samples.input_shape)))
    return f"x_train has shape [{shape}] {CHANNELS_LAST}"


def unlearned_labels(samples: Samples) -> str | None:
    """A sentence about labels without a training sample; None where every label has one."""
    if not samples.classes or samples.y_train.ndim != 1:  # real targets, or a label at each step
        return None
    trained, tested = (
        np.bincount(y, minlength=len(samples.classes)) for y in (samples.y_train, samples.y_test)
    )
    if not len(missing := np.flatnonzero(trained == 0)):
        return None
    labels, has = ("label", "has") if len(missing) == 1 else ("labels", "have")
    sentence = f"{labels} {first_ten(missing.tolist())} {has} no training sample"
    if count := int(tested[missing].sum()):
        return f"{sentence}, but {counted(count, 'test sample')}"
    return f"{sentence} and no test sample; the model has an output for each label from 0 on"


def untested_devices(divided: Federated) -> str | None:
    """A sentence about the devices without test samples; None where all have some."""
    untested = [k for k, index in enumerate(divided.test_index) if not len(index)]
    if not untested:
        return None
    have, them = ("has", "it") if len(untested) == 1 else ("have", "them")
    return (
        f"{len(untested)} of {counted(len(divided.test_index), 'device')} {have} no test sample, "
        f"and means of loss and accuracy leave {them} out: {first_ten(untested)}"
    )

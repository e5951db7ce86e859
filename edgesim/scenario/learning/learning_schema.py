"""The section learning of a scenario: data, model, method, and what is minimised."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word, WordList
from edgesim.scenario.learning.partition_schema import Partition
from edgesim.scenario.per_device_values import MethodReader, MethodSpec, SelectionReader
from edgesim.scenario.section import OURS, Section, key


class LearningSection(Section):
    dataset: Annotated[str, Word(looks="the name of a data set, see edgesim list datasets")] = key(
        "the data; ./mine.npz, a folder of .npy files or ./file.py:function for data of your own; "
        "none: nothing is trained, only time, bits and joules are counted, "
        "for the model on the data that it was made for (liu-cnn: 28x28x1, 10 classes)",
        "digits",
    )
    partition: Annotated[Partition, Field(discriminator="kind")] | None = key(
        "who holds what",
        "{kind: labels, labels_per_device: 2}",
        None,
        "not set: needed with every data set",
    )
    samples_per_device: Annotated[int | None, WholeNumber(1, 10**9, none=True)] = key(
        "training samples of each device; none: the data is dealt out completely; "
        "with dataset none, one batch",
        500,
        None,
        f"{OURS}: all data is used",
    )
    validation: Annotated[float | None, Quantity(high=0.5)] = key(
        "share of each device's training samples that is held out, with its mix of labels: used "
        "for nothing but the measures validation_accuracy and validation_loss, by which edgesim "
        "sweep --select chooses",
        0.2,
        None,
        "not set: all training samples are trained on",
    )
    inputs: Annotated[str, Word(("unit", "standard", "bytes"))] = key(
        "scale of the pixels: unit: [0, 1]; standard: less the mean of each channel of the "
        "training pictures, over its deviation; bytes: [0, 255]",
        "standard",
        "unit",
        f"{OURS}; FedLPS's program standardises, SpaFL's trains on bytes",
        written=False,
    )
    model: Annotated[str, Word(looks="the name of a model, see edgesim list models")] = key(
        "the network; ./file.py:name for a torch.nn.Module of your own", "mlp"
    )
    classifier: Annotated[tuple[str, ...] | None, WordList("modules or parameters")] = key(
        "of a model of your own: names of the modules or parameters whose role is classifier, "
        "all others are features",
        ["fc1", "fc2"],
        None,
        f"{OURS}: the last module with weights that a forward pass calls",
    )
    loss: Annotated[str | None, Word(looks="the name of a loss, or ./file.py:function")] = key(
        "what is minimised: cross-entropy, squared-error, absolute-error, or a function of yours "
        "(outputs, y) -> loss of each sample",
        "squared-error",
        None,
        "cross-entropy for labels, squared-error for real targets",
    )
    metric: Annotated[str | None, Word(looks="the name of a loss, or ./file.py:function")] = key(
        "what is measured beside loss and accuracy, a column of the table rounds: one of the "
        "losses, or a function of yours (outputs, y) -> value of each sample",
        "absolute-error",
        None,
        f"{OURS}: nothing else",
    )
    batch_size: Annotated[int, WholeNumber(1, 10**6)] = key("samples per SGD step", 128)
    method: Annotated[MethodSpec, MethodReader()] = key(
        "the algorithm and its parameters", "{name: fedavg}"
    )
    selection: Annotated[MethodSpec, SelectionReader()] = key(
        "which of the idle devices take part, as many as the method's participants, with the "
        "rule's parameters; ./file.py:function for a rule of your own; oort, refl, and prunefl "
        "with rounds_alone have their own",
        "best-channel",
        MethodSpec("uniform"),
        "McMahan et al., AISTATS 2017, Algorithm 1",
        written=False,
    )
    executor: Annotated[str, Word(("auto", "resident", "pool", "batched", "dask"))] = key(
        "how waiting jobs are trained: one by one, on several threads, stacked, by workers of a "
        "dask cluster (docs/use/cluster.md); auto: by docs/performance.md",
        "pool",
        "auto",
        f"{OURS}: a rule written from benchmarks",
    )
    device: Annotated[str, Word(looks="a torch device such as cpu or cuda:0")] = key(
        "where training runs", "cpu", "cpu", f"{OURS}: runs everywhere, byte-identical"
    )

    @field_validator("partition", mode="before")
    @classmethod
    def _none(cls, given: object) -> object:
        return None if given == "none" else given

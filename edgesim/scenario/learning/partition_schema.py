"""The section learning.partition of a scenario: which device holds which samples."""

from __future__ import annotations

from typing import Annotated, Literal

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.section import OURS, Section, key


class IidPartition(Section):
    kind: Literal["iid"] = key("iid: every device draws from all labels alike", "iid")


class LabelPartition(Section):
    kind: Literal["labels"] = key("labels: every device holds few labels", "labels")
    labels_per_device: Annotated[int, WholeNumber(1, 1000)] = key("labels on each device", 2)


class DirichletPartition(Section):
    kind: Literal["dirichlet"] = key(
        "dirichlet: label shares drawn from a Dirichlet distribution", "dirichlet"
    )
    alpha: Annotated[float, Quantity()] = key(
        "concentration; small means few labels per device", 0.3
    )
    min_samples: Annotated[int | None, WholeNumber(1, 10**9, none=True)] = key(
        "training samples that every device has at least: shares are drawn anew until they do; "
        "none: at least one",
        10,
        None,
        f"{OURS}: the first draw is taken",
    )


class SpeakerPartition(Section):
    kind: Literal["speakers"] = key(
        "speakers: every device holds the lines of one speaker; only for text with speakers",
        "speakers",
    )


class NaturalPartition(Section):
    kind: Literal["natural"] = key(
        "natural: every device holds the samples of one client; only for data with clients",
        "natural",
    )


class FilePartition(Section):
    kind: Literal["file"] = key("file: a file says which device holds which sample", "file")
    file: Annotated[str, Word(looks="the path of a .csv or .npz file")] = key(
        "CSV with the columns sample, device (from 0 on) and, if wanted, part (train or test); or "
        ".npz with the arrays train and, if wanted, test: the device of each sample, -1 for none",
        "split.csv",
    )


Partition = (
    IidPartition
    | LabelPartition
    | DirichletPartition
    | SpeakerPartition
    | NaturalPartition
    | FilePartition
)

"""Data sets, and their division among the devices.

Images are float32 in [0, 1], [N, channels, height, width]; text is int64 codes [N, length]. Labels
are read at once, images only when they are used, so that a scenario is checked without them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from fl.contracts import Array, Streams
from fl.data import file_readers as files
from fl.data.array_files import array_paths
from fl.data.partitions.partition import hold_out, partition
from fl.data.picture_sets import (
    CINIC10,
    CLOTHES,
    DIGITS,
    TINY_IMAGENET,
    DecodedPictures,
    cifar10,
    cifar100,
    cifar100_paths,
    cifar_paths,
    digits,
    idx,
)
from fl.data.reddit_comments import inputs, read_comments, reddit_files, targets
from fl.data.samples import Federated, Samples
from fl.data.shakespeare_text import CONTEXT, read_play
from fl.errors import DataError, did_you_mean

__all__ = ["DATASETS", "NONE", "DataError", "Federated", "Samples", "load", "locate", "spread"]


def shakespeare_path(root: Path | None) -> Path:
    if root is not None:
        return files.text_file(root / "shakespeare", "input.txt")
    raise DataError(
        "data set shakespeare is not here: set EDGESIM_DATA or --data to a folder with "
        "shakespeare/input.txt, which is data/tinyshakespeare/input.txt of "
        "github.com/karpathy/char-rnn"
    )


def shakespeare(root: Path | None) -> Samples:
    """Tiny Shakespeare in ROOT/shakespeare/input.txt: 80 characters -> the next one."""
    play = read_play(shakespeare_path(root))
    labels = play.codes[play.train], play.codes[play.test]
    contexts = lambda: (play.contexts(play.train), play.contexts(play.test))  # noqa: E731
    return Samples(*labels, contexts, (CONTEXT,), play.characters, play.owners, text=True)


def reddit(root: Path | None) -> Samples:
    """Reddit's comments in ROOT/reddit: nine words of a row -> the word behind each."""
    comments = read_comments(*reddit_files(root))
    train, test = comments.train, comments.test
    return Samples(
        targets(train),
        targets(test),
        lambda: (inputs(train), inputs(test)),
        (train.shape[1] - 1,),
        comments.words,
        comments.owners,
        text=True,
    )


# name -> loader, description, source
DATASETS: dict[str, tuple[Callable[[Path | None], Samples], str, str]] = {
    "digits": (
        digits,
        "8x8 handwritten digits, 1797 images, comes with scikit-learn",
        "UCI Optical Recognition, 1998",
    ),
    "mnist": (
        idx("mnist", "mnist_784", DIGITS),
        "28x28 handwritten digits, 60,000 + 10,000",
        "LeCun et al., 1998",
    ),
    "fashion-mnist": (
        idx("fashion-mnist", "Fashion-MNIST", CLOTHES),
        "28x28 pictures of clothes, 60,000 + 10,000",
        "Xiao et al., 2017",
    ),
    "cifar10": (cifar10, "32x32 colour pictures, 50,000 + 10,000", "Krizhevsky, 2009"),
    "cifar100": (
        cifar100,
        "32x32 colour pictures of 100 classes, 50,000 + 10,000",
        "Krizhevsky, 2009",
    ),
    "cinic10": (
        CINIC10,
        "32x32 colour pictures of CIFAR-10's classes, 90,000 + 90,000, decoded once",
        "Darlow et al., 2018",
    ),
    "tiny-imagenet": (
        TINY_IMAGENET,
        "64x64 colour pictures of 200 classes, 100,000 + 10,000, decoded once",
        "Stanford CS231n, 2015",
    ),
    "shakespeare": (
        shakespeare,
        "80 characters of a speaker to the next one, by speaker",
        "Karpathy, char-rnn, 2015",
    ),
    "reddit": (
        reddit,
        "9 words of a comment to the word behind each, by user, the 1,000 with the most comments",
        "LEAF: Caldas et al., 2018",
    ),
}

YOURS = "data of yours are ./folder, file.npz or ./file.py:function"
NONE = "none"  # no data set: nothing is trained or tested


def data_root(root: str | Path | None) -> Path | None:
    """The folder of the data files: the argument, else EDGESIM_DATA, else None (OpenML)."""
    chosen = root or os.environ.get("EDGESIM_DATA")
    return Path(chosen) if chosen else None


def check_name(dataset: str) -> None:
    if dataset not in DATASETS:
        names = [*DATASETS, NONE]
        problem = f'there is no data set "{dataset}" (there are {", ".join(names)}; {YOURS})'
        raise DataError(problem + did_you_mean(dataset, names))


def locate(dataset: str, root: str | Path | None = None) -> list[Path]:
    """The data files, with presence, headers and sizes checked, but not loaded.

    The list is empty for digits and none, and without a root, where OpenML or its cache is used.
    """
    if dataset == NONE:
        return []
    check_name(dataset)
    folder = data_root(root)
    if dataset == "shakespeare":
        return [shakespeare_path(folder)]
    if dataset == "cifar100":
        return cifar100_paths(folder)
    if dataset == "reddit":
        return [path for part in reddit_files(folder) for path in part]
    if isinstance(decoded := DATASETS[dataset][0], DecodedPictures):
        return array_paths(decoded.path(folder))
    if dataset == "digits" or folder is None:
        return []
    if dataset == "cifar10":
        return cifar_paths(folder)
    return [path for part in ("train", "t10k") for path in files.idx_pair(folder / dataset, part)]


def load(dataset: str, root: str | Path | None = None) -> Samples:
    """A data set from ROOT, else EDGESIM_DATA, else OpenML.

    Raises:
        DataError: a file is missing or damaged.
    """
    check_name(dataset)
    return DATASETS[dataset][0](data_root(root))


def spread(
    s: Samples,
    devices: int,
    streams: Streams,
    validation: float | None = None,
    **partition_options,
) -> Federated:
    """A data set divided among K devices.

    Args:
        s: the data set.
        devices: K.
        streams: named random streams.
        validation: share of a device's training samples that is held out; None: nothing.
        partition_options: of `fl.data.partitions.partition`.
    """
    classes = len(s.classes) if s.y_train.ndim == 1 else 0
    train, test = partition(
        s.y_train, s.y_test, classes, devices, streams, owners=s.owners, **partition_options
    )
    held: Sequence[Array] = ()
    if validation is not None:
        kinds = s.y_train if classes else np.zeros(len(s.y_train), dtype=np.int64)
        train, held = hold_out(kinds, train, validation, streams)
    clients = None
    if partition_options.get("kind") == "natural" and s.owners and s.clients is not None:
        clients = s.clients[[s.owners[0][mine[0]] for mine in train]]
    return Federated(
        s.y_train, s.y_test, s.images, s.input_shape, train, test, s.classes, s.text, held, clients
    )

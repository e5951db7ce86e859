"""Partitions of a data set among devices: iid, by labels, Dirichlet, by speaker, or as given.

Every sample is used at most once. Test samples follow the training samples, so that each device is
tested on its own mix of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fl.contracts import Array, Streams
from fl.data.partitions.given_partitions import by_client, by_file, with_most_samples
from fl.data.partitions.label_counts import (
    apportion,
    capped,
    deal,
    of_one_class,
    tally,
    test_counts,
    train_counts,
)
from fl.errors import DataError

ROUNDING = 1e-9  # so that 0.35 * 180 = 62.99999999999999 is 63


def by_speaker(
    owners: tuple[Array, Array | None] | None,
    devices: int,
    samples_per_device: int | None,
    rng: np.random.Generator,
) -> tuple[list[Array], list[Array]]:
    """Training and test indices of the devices; device k has the k-th largest speaker."""
    if owners is None or owners[1] is None:
        raise DataError(
            'partition kind is "speakers", but this data set has none; use iid, labels or dirichlet'
        )
    largest = with_most_samples(owners[0], devices, "speakers")
    train, test = ([np.flatnonzero(owner == k) for k in largest] for owner in owners)
    return sampled(train, samples_per_device, rng), test


def sampled(
    parts: list[Array], samples_per_device: int | None, rng: np.random.Generator
) -> list[Array]:
    """At most so many of each device's samples, drawn at random."""
    if samples_per_device is None:
        return parts
    return [np.sort(rng.permutation(mine)[:samples_per_device]) for mine in parts]


def counts_of(labels: Array, classes: int, parts: list[Array]) -> Array:
    """Label counts [K, C] of parts of the data."""
    return np.stack([tally(labels[mine], classes) for mine in parts])


def partition(
    train_labels: Array,
    test_labels: Array,
    classes: int,
    devices: int,
    streams: Streams,
    kind: str = "iid",
    labels_per_device: int | None = None,
    alpha: float | None = None,
    samples_per_device: int | None = None,
    min_samples: int | None = None,
    owners: tuple[Array, Array | None] | None = None,
    file: Path | None = None,
) -> tuple[list[Array], list[Array]]:
    """Training and test indices of every device.

    Args:
        train_labels: int [N], or of every step [N, T], or real targets [N, outputs].
        test_labels: the same.
        classes: number of them; 0 where a sample has not one label.
        devices: K.
        streams: named random streams.
        kind: iid | labels | dirichlet | speakers | natural | file.
        labels_per_device: for labels.
        alpha: concentration, for dirichlet.
        samples_per_device: a cap on the training samples, with the same mix of labels, or at random
            where clients or a file divide them. Test samples follow what a device has without it.
        min_samples: least training samples of a device, for dirichlet, before that cap.
        owners: speaker or client of each sample (train, test), int [N], for speakers and natural.
        file: which device has which sample, for file (`fl.data.given_partitions.by_file`).

    Raises:
        DataError: an argument is out of range, or some device would be left without training data.
    """
    if devices > len(train_labels):
        raise DataError(f"{len(train_labels)} training samples are too few for {devices} devices")
    rng = streams.stream("partition")
    if kind == "speakers":
        return by_speaker(owners, devices, samples_per_device, rng)
    if not classes:
        if kind in ("labels", "dirichlet"):
            real = train_labels.dtype.kind == "f"
            raise DataError(
                f'partition kind is "{kind}", which divides by label, but a sample of this data '
                f"set has {'no label' if real else 'several labels'}; use iid, natural or file"
            )
        # without labels all samples are alike: they are dealt as if there were one class
        classes, train_labels, test_labels = 1, *map(of_one_class, (train_labels, test_labels))
    if kind in ("natural", "file"):
        sizes = len(train_labels), len(test_labels)
        train, tests = (
            by_file(file, sizes, devices) if file is not None else by_client(owners, devices)
        )
        if tests is None:
            held = test_counts(counts_of(train_labels, classes, train), test_labels)
            tests = deal(test_labels, held, streams.stream("partition-test"))
        return sampled(train, samples_per_device, rng), tests
    counts = train_counts(
        train_labels, classes, devices, rng, kind, labels_per_device, alpha, min_samples
    )
    if (counts.sum(axis=1) == 0).any():
        raise DataError(f"{len(train_labels)} training samples are too few for {devices} devices")
    tests = deal(test_labels, test_counts(counts, test_labels), streams.stream("partition-test"))
    return deal(train_labels, capped(counts, samples_per_device), rng), tests


def hold_out(
    labels: Array, parts: Sequence[Array], fraction: float, streams: Streams
) -> tuple[list[Array], list[Array]]:
    """Divide each device's training samples into those it trains on and those held out.

    What is held out has the device's mix of labels, and is drawn from the device's own stream.

    Args:
        labels: of all training samples, int [N].
        parts: per device the indices of its training samples.
        fraction: of a device's samples, in (0, 1); rounded down, so that one is left to train on.
        streams: named random streams.

    Returns:
        Per device the indices that remain, and those held out.
    """
    kept, held = [], []
    for k, mine in enumerate(parts):
        counts = tally(labels[mine], int(labels.max()) + 1)
        wanted = apportion(int(fraction * len(mine) + ROUNDING), counts)
        (chosen,) = deal(labels[mine], wanted[None], streams.stream("validation", device=k))
        kept.append(np.delete(mine, chosen))
        held.append(mine[chosen])
    return kept, held

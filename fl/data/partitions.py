"""Partitions of a data set among devices: iid, by labels, Dirichlet, by speaker, or as given.

Every sample is used at most once. Test samples follow the training samples, so that each device is
tested on its own mix of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fl.contracts import Array, Streams
from fl.data.given_partitions import by_client, by_file, with_most_samples
from fl.errors import DataError

KINDS = ("iid", "labels", "dirichlet", "speakers", "natural", "file")
MAX_DRAWS = 1000  # of a Dirichlet partition, until every device has min_samples


def apportion(total: int, shares: Array) -> Array:
    """Integers [K] that sum to ``total``, proportional to ``shares`` [K]: largest remainder."""
    exact = total * shares / shares.sum()
    counts = np.floor(exact).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def deal(labels: Array, counts: Array, rng: np.random.Generator) -> list[Array]:
    """Random indices of ``labels`` [N]: counts[k, c] samples of class c for device k."""
    parts: list[list[Array]] = [[] for _ in counts]
    for c in range(counts.shape[1]):
        mine = rng.permutation(np.flatnonzero(labels == c))
        ends = np.cumsum(counts[:, c])
        for k, end in enumerate(ends):
            parts[k].append(mine[end - counts[k, c] : end])
    return [np.sort(np.concatenate(part)).astype(np.int64) for part in parts]


def of_one_class(targets: Array) -> Array:
    """A label 0 for each sample."""
    return np.zeros(len(targets), dtype=np.int64)


def tally(labels: Array, classes: int) -> Array:
    """How many samples there are of each class [C]."""
    return np.bincount(labels, minlength=classes)


def iid_counts(labels: Array, classes: int, devices: int, rng: np.random.Generator) -> Array:
    """Label counts [K, C] of a random division into parts of equal size."""
    owner = rng.permutation(np.arange(len(labels)) % devices)
    counts = np.zeros((devices, classes), dtype=int)
    np.add.at(counts, (owner, labels), 1)
    return counts


def label_sets(
    devices: int, classes: int, labels_per_device: int, rng: np.random.Generator
) -> Array:
    """Labels that each device holds, bool [K, C]: every label is held equally often, up to one.

    Each device in turn takes the labels that the fewest devices hold so far, ties at random.
    """
    held = np.zeros((devices, classes), dtype=bool)
    for k in range(devices):
        order = np.lexsort((rng.random(classes), held.sum(axis=0)))
        held[k, order[:labels_per_device]] = True
    return held


def label_counts(labels: Array, shares: Array) -> Array:
    """Label counts [K, C]: the samples of each label divided in proportion to shares [K, C]."""
    counts = np.zeros(shares.shape, dtype=int)
    for c, total in enumerate(tally(labels, shares.shape[1])):
        if shares[:, c].any():
            counts[:, c] = apportion(int(total), shares[:, c].astype(float))
    return counts


def dirichlet_counts(
    labels: Array, classes: int, devices: int, alpha: float, rng: np.random.Generator
) -> Array:
    """Label counts [K, C]: each label is divided by its own draw from a symmetric Dirichlet."""
    counts = np.zeros((devices, classes), dtype=int)
    for c, total in enumerate(tally(labels, classes)):
        shares = rng.standard_gamma(alpha, devices)
        counts[:, c] = apportion(int(total), shares if shares.sum() > 0 else np.ones(devices))
    return counts


def without_empty_devices(counts: Array, wanted: Array) -> Array:
    """Counts [K, C] in which each device without samples gets one from another device.

    It is of the label with the largest ``wanted`` [K, C] of which some device with further samples
    has any, and comes from the device with most of it. Labels that are not wanted are not given.
    """
    counts = counts.copy()
    for k in np.flatnonzero(counts.sum(axis=1) == 0):
        can_spare = np.where(counts.sum(axis=1)[:, None] > 1, counts, 0)
        for c in np.argsort(-wanted[k], kind="stable"):
            donor = int(can_spare[:, c].argmax())
            if wanted[k, c] > 0 and can_spare[donor, c] > 0:
                counts[donor, c] -= 1
                counts[k, c] += 1
                break
    return counts


def capped(counts: Array, samples_per_device: int | None) -> Array:
    """At most so many samples per device, with its mix of labels."""
    if samples_per_device is None:
        return counts
    return np.stack(
        [
            apportion(min(int(row.sum()), samples_per_device), row) if row.any() else row
            for row in counts
        ]
    )


def test_counts(train: Array, test_labels: Array) -> Array:
    """Test label counts [K, C]: each label divided as the training samples of that label are.

    A device that rounding leaves without test data gets one sample of its most frequent label of
    which there are enough; where it has none of these, it stays without.
    """
    return without_empty_devices(label_counts(test_labels, train), train)


def redrawn(
    labels: Array, classes: int, devices: int, alpha: float, least: int, rng: np.random.Generator
) -> Array:
    """`dirichlet_counts`, drawn again until every device has at least so many samples."""
    if least * devices > len(labels):
        raise DataError(
            f"{len(labels)} training samples are too few for {devices} devices with {least} each"
        )
    for _ in range(MAX_DRAWS):
        counts = dirichlet_counts(labels, classes, devices, alpha, rng)
        if counts.sum(axis=1).min() >= least:
            return counts
    raise DataError(
        f"no draw out of {MAX_DRAWS} gave each of {devices} devices the {least} training samples "
        f"of min_samples; lower it, or raise alpha ({alpha:g})"
    )


def train_counts(
    labels: Array,
    classes: int,
    devices: int,
    rng: np.random.Generator,
    kind: str,
    labels_per_device: int | None,
    alpha: float | None,
    min_samples: int | None,
) -> Array:
    """Training label counts [K, C] of a partition of kind iid | labels | dirichlet."""
    if kind == "iid":
        return iid_counts(labels, classes, devices, rng)
    if kind == "labels":
        if labels_per_device is None or not 1 <= labels_per_device <= classes:
            raise DataError(f"labels_per_device is {labels_per_device}; allowed are 1 to {classes}")
        return label_counts(labels, label_sets(devices, classes, labels_per_device, rng))
    if kind == "dirichlet":
        if alpha is None or not 0 < alpha < np.inf:
            raise DataError(
                f"alpha of a dirichlet partition is {alpha}; it must be positive and finite"
            )
        counts = redrawn(labels, classes, devices, alpha, min_samples or 0, rng)
        return without_empty_devices(counts, np.broadcast_to(rng.random(classes), counts.shape))
    raise DataError(f'partition kind is "{kind}"; allowed are {", ".join(KINDS)}')


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
        samples_per_device: a cap on the training samples, with the same mix of labels.
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
        wanted = apportion(int(fraction * len(mine)), counts)
        (chosen,) = deal(labels[mine], wanted[None], streams.stream("validation", device=k))
        kept.append(np.delete(mine, chosen))
        held.append(mine[chosen])
    return kept, held

"""Who holds what: index lists per device from labels, by named streams. Every sample is used at most once.

Training samples are divided by one of three rules; test samples follow them, so that each device is tested on its own
mix of labels. A fourth one, speakers, leaves the samples with whom they come from.
"""

from __future__ import annotations

import numpy as np

from fl.contracts import Streams
from fl.errors import DataError

Array = np.ndarray
REDRAWS = 1000  # of a dirichlet partition, until every device has its least number of samples


def apportion(total: int, shares: Array) -> Array:
    """Whole numbers [K] proportional to ``shares`` [K] that sum to ``total``: largest remainder, lower index first."""
    exact = total * shares / shares.sum()
    counts = np.floor(exact).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def deal(labels: Array, counts: Array, rng: np.random.Generator) -> list[Array]:
    """Indices of ``labels`` [N] to each device so that device k gets counts[k, c] samples of class c, at random."""
    parts: list[list[Array]] = [[] for _ in counts]
    for c in range(counts.shape[1]):
        mine = rng.permutation(np.flatnonzero(labels == c))
        ends = np.cumsum(counts[:, c])
        for k, end in enumerate(ends):
            parts[k].append(mine[end - counts[k, c] : end])
    return [np.sort(np.concatenate(part)).astype(np.int64) for part in parts]


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
    """Which labels each device holds, bool [K, C]: so many each, every label held equally often (give or take one).

    Each device in turn takes the labels that the fewest devices hold so far, ties at random.
    """
    held = np.zeros((devices, classes), dtype=bool)
    for k in range(devices):
        order = np.lexsort((rng.random(classes), held.sum(axis=0)))
        held[k, order[:labels_per_device]] = True
    return held


def label_counts(labels: Array, held: Array) -> Array:
    """Label counts [K, C] where the samples of a label are shared equally by the devices that hold it."""
    counts = np.zeros(held.shape, dtype=int)
    for c, total in enumerate(tally(labels, held.shape[1])):
        if held[:, c].any():
            counts[:, c] = apportion(int(total), held[:, c].astype(float))
    return counts


def dirichlet_counts(
    labels: Array, classes: int, devices: int, alpha: float, rng: np.random.Generator
) -> Array:
    """Label counts [K, C] where each label is divided by its own draw from Dirichlet(alpha, ..., alpha)."""
    counts = np.zeros((devices, classes), dtype=int)
    for c, total in enumerate(tally(labels, classes)):
        shares = rng.standard_gamma(alpha, devices)
        counts[:, c] = apportion(int(total), shares if shares.sum() > 0 else np.ones(devices))
    return counts


def feed_the_empty(counts: Array, wanted: Array) -> Array:
    """Gives a device without any sample one of the label that it wants most, from the device with most of that label.

    ``wanted`` [K, C] says how much it wants each label. A device stays empty only where nobody can spare one.
    """
    counts = counts.copy()
    for k in np.flatnonzero(counts.sum(axis=1) == 0):
        can_spare = np.where(counts.sum(axis=1)[:, None] > 1, counts, 0)
        for c in np.argsort(-wanted[k], kind="stable"):
            donor = int(can_spare[:, c].argmax())
            if can_spare[donor, c] > 0:
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


def counts_for_test(train: Array, test_labels: Array) -> Array:
    """Test label counts [K, C]: each label divided as the training samples of that label are.

    A device that rounding leaves without test data gets one sample of its most frequent label.
    """
    counts = np.zeros_like(train)
    for c, total in enumerate(tally(test_labels, train.shape[1])):
        if train[:, c].any():
            counts[:, c] = apportion(int(total), train[:, c].astype(float))
    return feed_the_empty(counts, train)


def redrawn(
    labels: Array, classes: int, devices: int, alpha: float, least: int, rng: np.random.Generator
) -> Array:
    """`dirichlet_counts`, drawn again until every device has at least so many samples."""
    if least * devices > len(labels):
        raise DataError(
            f"{len(labels)} training samples are too few for {devices} devices with {least} each"
        )
    for _ in range(REDRAWS):
        counts = dirichlet_counts(labels, classes, devices, alpha, rng)
        if counts.sum(axis=1).min() >= least:
            return counts
    raise DataError(
        f"no draw out of {REDRAWS} gave each of {devices} devices the {least} training samples of min_samples; "
        f"lower it, or raise alpha ({alpha:g})"
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
        return feed_the_empty(counts, np.broadcast_to(rng.random(classes), counts.shape))
    raise DataError(f'partition kind is "{kind}"; allowed are iid, labels, dirichlet, speakers')


def by_speaker(
    owners: tuple[Array, Array] | None,
    devices: int,
    samples_per_device: int | None,
    rng: np.random.Generator,
) -> tuple[list[Array], list[Array]]:
    """Training and test indices of the devices: device k has what the k-th speaker says, those who say most first."""
    if owners is None:
        raise DataError(
            'partition kind is "speakers", but this data set has none; use iid, labels or dirichlet'
        )
    sizes = np.bincount(owners[0])
    largest = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    if devices > len(largest):
        raise DataError(
            f"{len(largest)} speakers have training samples: too few for {devices} devices"
        )
    train, test = ([np.flatnonzero(owner == k) for k in largest[:devices]] for owner in owners)
    if samples_per_device is not None:
        train = [np.sort(rng.permutation(mine)[:samples_per_device]) for mine in train]
    return train, test


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
    owners: tuple[Array, Array] | None = None,
) -> tuple[list[Array], list[Array]]:
    """Training and test indices of every device.

    Args:
        train_labels, test_labels: int [N].     kind: iid | labels (needs labels_per_device) | dirichlet (needs alpha)
            | speakers (needs owners).
        samples_per_device: a cap on the training samples; the mix of labels is kept, of a speaker any are taken.
        min_samples: least training samples of a device in a dirichlet partition, before that cap.
        owners: whose each sample is (train, test), int [N].
    Raises:
        DataError: an argument is out of range, or some device would be left without training data.
    """
    if devices > len(train_labels):
        raise DataError(f"{len(train_labels)} training samples are too few for {devices} devices")
    rng = streams.stream("partition")
    if kind == "speakers":
        return by_speaker(owners, devices, samples_per_device, rng)
    counts = train_counts(
        train_labels, classes, devices, rng, kind, labels_per_device, alpha, min_samples
    )
    if (counts.sum(axis=1) == 0).any():
        raise DataError(f"{len(train_labels)} training samples are too few for {devices} devices")
    tests = deal(
        test_labels, counts_for_test(counts, test_labels), streams.stream("partition-test")
    )
    return deal(train_labels, capped(counts, samples_per_device), rng), tests

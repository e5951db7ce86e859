"""How many samples of each label every device gets, and the samples themselves."""

from __future__ import annotations

import numpy as np

from fl.contracts import Array
from fl.errors import DataError

KINDS = ("iid", "labels", "dirichlet", "speakers", "natural", "file")
MAX_ALPHA = 1e100  # with which shares are equal to all digits, and their sum is still a number
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
        if not shares.any():  # all round to zero, but one outweighs the others by far
            shares[rng.integers(devices)] = 1.0
        counts[:, c] = apportion(int(total), shares)
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
        if alpha is None or not 0 < alpha <= MAX_ALPHA:
            raise DataError(
                f"alpha of a dirichlet partition is {alpha}; it must be positive, and at most "
                f"{MAX_ALPHA:g}"
            )
        counts = redrawn(labels, classes, devices, alpha, min_samples or 0, rng)
        return without_empty_devices(counts, np.broadcast_to(rng.random(classes), counts.shape))
    raise DataError(f'partition kind is "{kind}"; allowed are {", ".join(KINDS)}')

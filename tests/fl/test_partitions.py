"""Who holds what: every sample at most once, the promised labels, the same mix in the test data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl import partitions
from fl.files import DataError

CLASSES = 5


def divided(train, test, devices, seed=0, **options):
    parts, tests = partitions.partition(train, test, CLASSES, devices, Seeds(seed), **options)
    return parts, tests


def labels(sizes):
    return np.repeat(np.arange(CLASSES), sizes)


KINDS = st.one_of(
    st.just({"kind": "iid"}),
    st.integers(1, CLASSES).map(lambda n: {"kind": "labels", "labels_per_device": n}),
    st.floats(0.05, 10).map(lambda a: {"kind": "dirichlet", "alpha": a}),
)


@settings(max_examples=60)
@given(st.lists(st.integers(12, 40), min_size=CLASSES, max_size=CLASSES), st.integers(1, 12), KINDS, st.integers(0, 9))
def test_every_sample_at_most_once_and_nobody_without(sizes, devices, options, seed):
    train, test = labels(sizes), labels([4] * CLASSES)
    parts, tests = divided(train, test, devices, seed, **options)
    for split, whole in ((parts, train), (tests, test)):
        together = np.concatenate(split)
        assert len(np.unique(together)) == len(together)
        assert len(together) == 0 or together.max() < len(whole)
    assert min(map(len, parts)) >= 1
    if options["kind"] != "labels" or devices * options["labels_per_device"] >= CLASSES:
        assert sum(map(len, parts)) == len(train)
    again, _ = divided(train, test, devices, seed, **options)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@given(st.integers(1, 20), st.integers(1, CLASSES), st.integers(0, 9))
def test_labels_per_device_and_balance(devices, per_device, seed):
    held = partitions.label_sets(devices, CLASSES, per_device, Seeds(seed).stream("partition"))
    assert (held.sum(axis=1) == per_device).all()
    assert np.ptp(held.sum(axis=0)) <= 1


def test_two_labels_each_by_hand():
    parts, tests = divided(labels([10] * 5), labels([4] * 5), 5, kind="labels", labels_per_device=2)
    counts = np.stack([np.bincount(labels([10] * 5)[p], minlength=5) for p in parts])
    assert sorted(counts.sum(axis=0)) == [10] * 5
    assert all(sorted(row) == [0, 0, 0, 5, 5] for row in counts)
    test_mix = np.stack([np.bincount(labels([4] * 5)[p], minlength=5) for p in tests])
    assert np.array_equal(test_mix, (counts > 0) * 2)


@settings(max_examples=30)
@given(st.floats(0.1, 5), st.integers(0, 9))
def test_the_test_data_have_the_mix_of_the_training_data(alpha, seed):
    train, test = labels([400] * 5), labels([100] * 5)
    parts, tests = divided(train, test, 4, seed, kind="dirichlet", alpha=alpha)
    a = np.stack([np.bincount(train[p], minlength=5) for p in parts])
    b = np.stack([np.bincount(test[p], minlength=5) for p in tests])
    assert np.abs(a / 4 - b).max() <= 1  # rounding; an empty device may have got one more


def test_a_cap_keeps_the_mix():
    train = labels([100, 50, 0, 0, 0])
    (part,), (test,) = divided(train, labels([4, 2, 0, 0, 0]), 1, kind="iid", samples_per_device=30)
    assert np.bincount(train[part]).tolist() == [20, 10]
    assert len(test) == 6


@given(st.integers(0, 50), st.lists(st.floats(0.01, 1), min_size=1, max_size=8))
def test_apportion_sums_and_rounds(total, shares):
    shares = np.array(shares)
    counts = partitions.apportion(total, shares)
    assert counts.sum() == total
    assert np.abs(counts - total * shares / shares.sum()).max() < 1


def test_the_largest_remainder_is_rounded_up():
    assert partitions.apportion(10, np.array([0.14, 0.33, 0.53])).tolist() == [2, 3, 5]
    assert partitions.apportion(3, np.array([1.0, 1.0])).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "labels", "labels_per_device": 6}, "labels_per_device is 6; allowed are 1 to 5"),
        ({"kind": "labels"}, "labels_per_device is None"),
        ({"kind": "dirichlet", "alpha": 0.0}, "must be positive"),
        ({"kind": "shards"}, "allowed are iid, labels, dirichlet"),
    ],
)
def test_bad_arguments(options, said):
    with pytest.raises(DataError, match=said):
        divided(labels([9] * 5), labels([1] * 5), 3, **options)


def test_too_many_devices():
    with pytest.raises(DataError, match="5 training samples are too few for 6 devices"):
        divided(labels([1] * 5), labels([1] * 5), 6, kind="iid")

"""Who holds what: every sample at most once, the promised labels, the same mix in the test data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.data.partitions.label_counts import apportion, dirichlet_counts, label_sets
from fl.data.partitions.partition import hold_out, partition
from fl.errors import DataError

CLASSES = 5


def divided(train, test, devices, seed=0, **options):
    parts, tests = partition(train, test, CLASSES, devices, Seeds(seed), **options)
    return parts, tests


def labels(sizes):
    return np.repeat(np.arange(CLASSES), sizes)


KINDS = st.one_of(
    st.just({"kind": "iid"}),
    st.integers(1, CLASSES).map(lambda n: {"kind": "labels", "labels_per_device": n}),
    st.floats(0.05, 10).map(lambda a: {"kind": "dirichlet", "alpha": a}),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.integers(12, 40), min_size=CLASSES, max_size=CLASSES),
    st.integers(1, 12),
    KINDS,
    st.integers(0, 9),
)
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
    held = label_sets(devices, CLASSES, per_device, Seeds(seed).stream("partition"))
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
    counts = apportion(total, shares)
    assert counts.sum() == total
    assert np.abs(counts - total * shares / shares.sum()).max() < 1


def test_the_largest_remainder_is_rounded_up():
    assert apportion(10, np.array([0.14, 0.33, 0.53])).tolist() == [2, 3, 5]
    assert apportion(3, np.array([1.0, 1.0])).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "labels", "labels_per_device": 6}, "labels_per_device is 6; allowed are 1 to 5"),
        ({"kind": "labels"}, "labels_per_device is None"),
        ({"kind": "dirichlet", "alpha": 0.0}, "must be positive"),
        ({"kind": "dirichlet", "alpha": 1e308}, r"is 1e\+308; it must be .* at most 1e\+100"),
        ({"kind": "shards"}, "allowed are iid, labels, dirichlet, speakers"),
        (
            {"kind": "dirichlet", "alpha": 0.1, "min_samples": 16},
            "45 training samples are too few for 3 devices with 16",
        ),
        ({"kind": "speakers"}, "this data set has none; use iid, labels or dirichlet"),
    ],
)
def test_bad_arguments(options, said):
    with pytest.raises(DataError, match=said):
        divided(labels([9] * 5), labels([1] * 5), 3, **options)


def test_too_many_devices():
    with pytest.raises(DataError, match="5 training samples are too few for 6 devices"):
        divided(labels([1] * 5), labels([1] * 5), 6, kind="iid")


def test_shares_are_drawn_until_everybody_has_the_least_number():
    train, test = labels([40] * 5), labels([10] * 5)
    once, _ = divided(train, test, 6, seed=1, kind="dirichlet", alpha=0.2)
    least = min(map(len, once))
    assert least < 15
    parts, _ = divided(train, test, 6, seed=1, kind="dirichlet", alpha=0.2, min_samples=15)
    assert min(map(len, parts)) >= 15
    assert sum(map(len, parts)) == 200
    enough, _ = divided(train, test, 6, seed=1, kind="dirichlet", alpha=0.2, min_samples=least)
    assert all(
        np.array_equal(a, b) for a, b in zip(once, enough, strict=True)
    )  # the first draw was good enough


@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-6, 1e-300])
def test_a_small_concentration_gives_a_label_to_hardly_more_than_one_device(alpha):
    """Shares that are all too small for a double are not equal ones."""
    train = np.repeat(np.arange(50), 100)
    counts = dirichlet_counts(train, 50, 10, alpha, Seeds(0).stream("partition"))
    assert (counts.sum(axis=0) == 100).all() and (counts > 0).sum(axis=0).mean() < 2
    assert (counts.argmax(axis=0) == 0).sum() < 15  # every device has its turn


def test_a_least_number_that_no_draw_gives():
    with pytest.raises(
        DataError,
        match="no draw out of 1000 gave each of 9 devices the 5 training samples of min_samples",
    ):
        divided(labels([9] * 5), labels([1] * 5), 9, kind="dirichlet", alpha=0.1, min_samples=5)


def test_the_cap_comes_after_the_least_number():
    train, test = labels([40] * 5), labels([10] * 5)
    parts, _ = divided(
        train, test, 6, seed=1, kind="dirichlet", alpha=0.2, min_samples=15, samples_per_device=10
    )
    assert list(map(len, parts)) == [10] * 6


OWNERS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 3, 3]), np.array([0, 1, 1, 3, 3])


def test_speakers_keep_what_they_say():
    train, test = np.arange(10) % 5, np.arange(5)
    parts, tests = divided(train, test, 3, kind="speakers", owners=OWNERS)
    assert [part.tolist() for part in parts] == [
        [6, 7, 8, 9],
        [2, 3, 4],
        [0, 1],
    ]  # who says most comes first
    assert [part.tolist() for part in tests] == [[3, 4], [1, 2], [0]]
    parts, tests = divided(train, test, 4, kind="speakers", owners=OWNERS)
    assert (parts[3].tolist(), tests[3].tolist()) == ([5], [])
    parts, _ = divided(train, test, 3, kind="speakers", owners=OWNERS, samples_per_device=2)
    assert list(map(len, parts)) == [2, 2, 2]
    assert set(parts[0]) < {6, 7, 8, 9}
    with pytest.raises(DataError, match="4 speakers have training samples: too few for 5 devices"):
        divided(train, test, 5, kind="speakers", owners=OWNERS)


def test_text_can_be_divided_by_labels_too():
    parts, _ = divided(
        labels([9] * 5), labels([3] * 5), 5, kind="labels", labels_per_device=1, owners=OWNERS
    )
    assert list(map(len, parts)) == [9] * 5


def test_two_labels_of_mnist_for_a_hundred_devices():
    """FedLPS' pathological split: 180 training samples of two labels; the test samples of a label
    go to its holders.
    """
    train, test = np.repeat(np.arange(10), 6000), np.repeat(np.arange(10), 1000)
    options = {"kind": "labels", "labels_per_device": 2, "samples_per_device": 180}
    parts, tests = partition(train, test, 10, 100, Seeds(0), **options)
    counts = np.stack([np.bincount(train[part], minlength=10) for part in parts])
    assert all(sorted(row)[-2:] == [90, 90] for row in counts)
    assert all(
        np.array_equal(np.bincount(test[part], minlength=10), (row > 0) * 50)
        for part, row in zip(tests, counts, strict=True)
    )


def test_nobody_is_tested_on_a_label_that_it_does_not_hold():
    """The last label has no test samples: its holder stays without."""
    train, test = labels([10] * 5), labels([6, 6, 6, 6, 0])
    parts, tests = divided(train, test, 5, kind="labels", labels_per_device=1)
    own = [int(train[part[0]]) for part in parts]
    assert [len(part) for part in tests] == [0 if label == 4 else 6 for label in own]
    assert all((test[part] == label).all() for part, label in zip(tests, own, strict=True))


# --- samples held out for validation --------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=6),
    st.floats(0.01, 0.5),
    st.integers(0, 9),
)
def test_what_is_held_out_has_the_devices_mix_of_labels(sizes, fraction, seed):
    rng = np.random.default_rng(seed)
    known = rng.integers(0, CLASSES, sum(sizes))
    parts = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    kept, held = hold_out(known, parts, fraction, Seeds(seed))
    for mine, rest, out in zip(parts, kept, held, strict=True):
        assert sorted([*rest, *out]) == sorted(mine)
        assert len(out) == int(fraction * len(mine))
        mix = np.bincount(known[mine], minlength=CLASSES) * len(out) / len(mine)
        assert (abs(np.bincount(known[out], minlength=CLASSES) - mix) < 1).all()


def test_what_a_device_holds_out_does_not_depend_on_the_others():
    known, parts = labels([20] * CLASSES), [np.arange(0, 50), np.arange(50, 100)]
    _, both = hold_out(known, parts, 0.3, Seeds(1))
    _, alone = hold_out(known, parts[:1], 0.3, Seeds(1))
    assert np.array_equal(both[0], alone[0])
    _, other = hold_out(known, parts, 0.3, Seeds(2))
    assert not np.array_equal(both[0], other[0])


@pytest.mark.parametrize(
    ("size", "fraction", "out"), [(180, 0.35, 63), (100, 0.29, 29), (9, 0.5, 4)]
)
def test_a_whole_number_of_samples_is_held_out_whole(size, fraction, out):
    kept, held = hold_out(np.zeros(size, dtype=int), [np.arange(size)], fraction, Seeds(1))
    assert (len(kept[0]), len(held[0])) == (size - out, out)

"""The kept weights of Liu (21) and the mean of (26), by hand and against a slow rule."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgesim.contracts import Sent
from fl.aggregate import mean_over_holders
from fl.masks import importance, kept_count, largest

ALL = torch.ones(6, dtype=torch.bool)


def bits(text):
    return torch.tensor([c == "1" for c in text])


def test_of_equal_scores_the_lower_index_is_kept():
    score = torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0, 0.0])
    assert torch.equal(largest(score, ALL, 2), bits("011000"))
    assert torch.equal(largest(score, ALL, 4), bits("011110"))
    assert torch.equal(largest(torch.zeros(6), ALL, 3), bits("111000"))


def test_only_the_prunable_coordinates_are_ranked():
    score = torch.tensor([9.0, 1.0, 9.0, 2.0, 3.0, 9.0])
    assert torch.equal(largest(score, bits("010110"), 2), bits("000110"))


def test_none_all_and_scores_that_are_no_numbers():
    score = torch.tensor([1.0, torch.nan, 3.0, torch.inf, 3.0, 0.0])
    assert not largest(score, ALL, 0).any()
    assert largest(score, ALL, 6).all()
    assert torch.equal(largest(score, ALL, 2), bits("010100"))


@given(arrays(np.float32, st.integers(1, 40), elements=st.integers(0, 5)), st.data())
def test_largest_agrees_with_a_stable_sort(score, data):
    keep = data.draw(st.integers(0, len(score)))
    expected = np.zeros(len(score), dtype=bool)
    expected[np.argsort(-score, kind="stable")[:keep]] = True
    mask = largest(torch.from_numpy(score), torch.ones(len(score), dtype=torch.bool), keep)
    assert np.array_equal(mask.numpy(), expected)


def test_importance_is_the_change_of_the_warm_up():  # Liu (20)
    assert importance(torch.tensor([1.0, -2.0]), torch.tensor([0.5, 1.0])).tolist() == [0.5, 3.0]


def test_kept_count():
    assert [kept_count(rho, 10) for rho in (0.0, 0.26, 1.0)] == [10, 7, 0]


def sent(values, mask):
    return Sent(torch.tensor(values), bits(mask))


def test_mean_over_the_devices_that_kept_a_weight():  # Liu (26)
    old = torch.tensor([7.0, 7.0, 7.0])
    updates = [sent([1.0, 4.0, 9.0], "110"), sent([3.0, 9.0, 9.0], "100")]
    assert mean_over_holders(old, updates, [1.0, 1.0]).tolist() == [2.0, 4.0, 7.0]  # the last one: nobody kept it


def test_weighted_mean():
    updates = [sent([1.0], "1"), sent([4.0], "1")]
    assert mean_over_holders(torch.zeros(1), updates, [2.0, 1.0]).tolist() == [2.0]

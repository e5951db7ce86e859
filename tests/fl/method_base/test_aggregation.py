"""Means over holders and of differences."""

from itertools import product

import numpy as np
import torch

from fl.contracts import Sent
from fl.method_base.aggregation import mean_over_holders


def bits(text):
    return torch.tensor([c == "1" for c in text])


def sent(values, mask):
    return Sent(torch.tensor(values), bits(mask))


def test_mean_over_random_holders():
    """FedMAP, eqs. (12)-(14): a = 2, q = 1/2, e = 2, 4 gives (1 - q^a) mean(e) = 0.75 x 3."""
    means = []
    for masks in product([False, True], repeat=2):
        sent = [
            Sent(torch.tensor([e]), torch.tensor([m]))
            for e, m in zip((2.0, 4.0), masks, strict=True)
        ]
        means.append(float(mean_over_holders(torch.zeros(1), sent, [1, 1])))
    assert np.mean(means) == 2.25


def test_mean_of_differences_over_holders():
    """FedMAP, Section 3: (2 + 4) / 2 where both hold, 4 where one holds, 0 where nobody does."""
    x = torch.ones(3)
    sent = [
        Sent(x + torch.tensor([2.0, 4.0, 9.0]), torch.tensor([True, True, False])),
        Sent(x + torch.tensor([4.0, 9.0, 9.0]), torch.tensor([True, False, False])),
    ]
    assert (mean_over_holders(x, sent, [1, 1]) - x).tolist() == [3, 4, 0]


def test_mean_over_the_devices_that_kept_a_weight():  # Liu (26)
    old = torch.tensor([7.0, 7.0, 7.0])
    updates = [sent([1.0, 4.0, 9.0], "110"), sent([3.0, 9.0, 9.0], "100")]
    assert mean_over_holders(old, updates, [1.0, 1.0]).tolist() == [
        2.0,
        4.0,
        7.0,
    ]  # the last one: nobody kept it


def test_weighted_mean():
    updates = [sent([1.0], "1"), sent([4.0], "1")]
    assert mean_over_holders(torch.zeros(1), updates, [2.0, 1.0]).tolist() == [2.0]

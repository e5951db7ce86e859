"""Slopes of drawn masks: FedMAP, (7), (10), (11)."""

import pytest
import torch

from fl.masks.straight_through import slope


@pytest.mark.parametrize(
    ("p", "factors"),
    [
        (0.5, [0, 0.125, 0.15625, 0.1640625, 0.166015625]),
        (0.9, [0, 0.081, 0.14661, 0.1997541, 0.242800821]),
    ],
)
def test_factor_table(p, factors):
    given_draws = [float(slope(torch.tensor(p, dtype=torch.float64), n)) for n in range(5)]
    assert given_draws == pytest.approx(factors, abs=1e-9)


def test_recursion_of_the_derivative():
    """FedMAP, eq. (11): D_n = p (1 + p D_{n-1}), times p (1 - p)."""
    for p in torch.linspace(0.1, 0.9, 9, dtype=torch.float64):
        derivative = torch.zeros((), dtype=torch.float64)
        for n in range(1, 11):
            derivative = p * (1 + p * derivative)
            assert abs(derivative - (p - p ** (2 * n + 1)) / (1 - p**2)) < 1e-12
            assert abs(derivative * p * (1 - p) - slope(p, n)) < 1e-12


def test_identity_surrogate():
    """p (1 - p^n): 1/4, 3/8, 7/16."""
    half = torch.tensor(0.5)
    assert [float(slope(half, n, "identity")) for n in (1, 2, 3)] == [0.25, 0.375, 0.4375]

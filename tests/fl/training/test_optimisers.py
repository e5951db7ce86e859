"""The optimisers take the steps of torch's own, on masked coordinates."""

import pytest
import torch

from fl.contracts import Adam, Sgd
from fl.training.optimisers import make_optimiser

GRADIENTS = [
    torch.tensor([3.0, -4.0, 0.5]),
    torch.tensor([0.1, 0.2, -0.7]),
    torch.tensor([-1.0, 2.0, 5.0]),
]


def ours(optimiser, lr, mask=None):
    w = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    move = make_optimiser(optimiser, [(w, mask, lr)])
    for gradient in GRADIENTS:
        move([gradient.double()])
    return w


def torchs(make, clip=None):
    w = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    optimiser = make([w])
    for gradient in GRADIENTS:
        w.grad = gradient.double().clone()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_([w], clip)
        optimiser.step()
    return w.detach()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_sgd_is_torchs(momentum, weight_decay, clip):
    expected = torchs(
        lambda w: torch.optim.SGD(w, 0.05, momentum=momentum, weight_decay=weight_decay), clip
    )
    assert torch.allclose(ours(Sgd(momentum, weight_decay, clip), 0.05), expected, atol=1e-12)


def test_adam_is_torchs():
    expected = torchs(lambda w: torch.optim.Adam(w, 0.05, betas=(0.8, 0.99), eps=1e-6))
    assert torch.allclose(ours(Adam(0.8, 0.99, 1e-6), 0.05), expected, atol=1e-12)


@pytest.mark.parametrize("optimiser", [Sgd(), Sgd(0.9, 0.1, 1.0), Adam()])
def test_a_masked_coordinate_never_moves_and_does_not_count_in_the_norm(optimiser):
    w = ours(optimiser, 0.05, torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64))
    assert w[1] == -2.0 and w[0] != 1.0 and w[2] != 0.5


def test_clipping_by_hand():
    """|(3, -4)| = 5 is cut to 1: a step of 0.1 (0.6, -0.8)."""
    w = torch.zeros(2)
    make_optimiser(Sgd(clip=1.0), [(w, None, 0.1)])([torch.tensor([3.0, -4.0])])
    assert w.tolist() == pytest.approx([-0.06, 0.08], abs=1e-6)

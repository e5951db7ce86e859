"""The loss of stacked perceptrons."""

import pytest
import torch

from fl.stacked_training.perceptron_gradients import StackedCrossEntropy


def log_loss(logits, y, share):
    return StackedCrossEntropy(logits)(logits, y, share)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("batch", "classes"), [(10, 10), (1, 10), (7, 3), (16, 62)])
def test_the_loss_of_a_sample_does_not_know_its_neighbours(dtype, batch, classes):
    """A processor computes the numbers at the end of a row, short of a whole vector, by another
    rule.
    """
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(40, batch, classes, generator=generator, dtype=dtype)
    y = torch.randint(0, classes, (40, batch), generator=generator)
    share = torch.rand(40, batch, generator=generator, dtype=dtype)
    together = log_loss(logits, y, share)
    for first, count in ((0, 1), (0, 3), (1, 3), (5, 7), (17, 16), (3, 31)):
        some = slice(first, first + count)
        alone = log_loss(logits[some], y[some], share[some])
        assert all(torch.equal(one, each[some]) for one, each in zip(alone, together, strict=True))
    leaf = logits.double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(leaf.flatten(0, 1), y.flatten(), reduction="none")
    (expected * share.flatten()).sum().backward()
    assert torch.allclose(together[0].flatten().double(), expected, rtol=1e-5, atol=4e-6)
    assert torch.equal(together[1], logits.argmax(2) == y)
    assert torch.allclose(together[2].double(), leaf.grad, atol=1e-6)

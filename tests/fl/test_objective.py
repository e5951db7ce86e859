"""Values of samples that have several labels."""

import torch

from fl.data.samples import IGNORED
from fl.objective import hits


def test_the_share_of_hits_of_a_text_is_exact():
    """7 of 10 steps are 0.7, not the float32 next to it, which is below a target of 0.7."""
    y = torch.tensor([[1] * 10 + [IGNORED] * 2])
    outputs = torch.zeros(1, 2, 12)
    outputs[0, 1, :7] = outputs[0, 0, 7:] = 1.0
    assert hits(outputs, y).double().tolist() == [0.7]

"""What is minimised and what is measured on a sample, where that is not cross entropy and accuracy.

Torch is imported only where something is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fl.contracts import Tensor
from fl.data.samples import IGNORED
from fl.errors import ObjectiveError

# (outputs [B, ...], labels [B] or [B, T], or targets [B, outputs]) -> value of each sample [B]
PerSample = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    from torch.nn import functional

    return over_steps(functional.cross_entropy(outputs, y, reduction="none"), y)


def hits(outputs: Tensor, y: Tensor) -> Tensor:
    """Is the label the likeliest class, bool [B]; of texts the share of the steps, double [B]."""
    hit = outputs.argmax(dim=1) == y
    return hit if y.dim() == 1 else over_steps(hit.double(), y)


def label_hits(outputs: Tensor, y: Tensor) -> Tensor:
    """Is each label the likeliest class, bool [labels]; padding has none."""
    return (outputs.argmax(dim=1) == y)[y != IGNORED]


def over_steps(values: Tensor, y: Tensor) -> Tensor:
    """Values of samples [B] as they are; of steps [B, T] the mean over those with a label."""
    if y.dim() == 1:
        return values
    counted = y != IGNORED
    return (values * counted).sum(dim=1) / counted.sum(dim=1)


def squared_error(outputs: Tensor, y: Tensor) -> Tensor:
    """The mean over the outputs of a sample."""
    return (outputs - y).square().flatten(1).mean(1)


def absolute_error(outputs: Tensor, y: Tensor) -> Tensor:
    """The mean over the outputs of a sample."""
    return (outputs - y).abs().flatten(1).mean(1)


CROSS_ENTROPY = "cross-entropy"
ERRORS: dict[str, PerSample] = {"squared-error": squared_error, "absolute-error": absolute_error}
LOSSES: dict[str, PerSample] = {CROSS_ENTROPY: cross_entropy, **ERRORS}


@dataclass(frozen=True)
class Objective:
    """What a task minimises, and what else it measures.

    Args:
        loss: of each sample.
        plain: is it cross entropy, for which methods and executors have ways of their own?
        labels: are there labels, so that a sample can be hit?
        metric: of each sample, measured beside loss and accuracy; None: nothing.
        metric_name: its column in the table rounds.
    """

    loss: PerSample = cross_entropy
    plain: bool = True
    labels: bool = True
    metric: PerSample | None = None
    metric_name: str = ""

    @property
    def rows(self) -> int:
        """How many values `measured` gives for a sample."""
        return 2 if self.metric is None else 3

    def each(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample [B]."""
        return per_sample(self.loss(outputs, y), len(y), "loss")

    def mean(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The mean loss of a batch."""
        if self.plain:
            from torch.nn import functional

            # the mean of single losses would sum in another order
            return functional.cross_entropy(outputs, y)
        values = self.each(outputs, y)
        lost = outputs.requires_grad and not values.requires_grad
        if lost or not values.is_floating_point():
            problem = "gives values without a gradient; compute them from the outputs by "
            raise ObjectiveError("loss", f"{problem}differentiable functions of torch")
        return values.mean()

    def measured(self, outputs: Tensor, y: Tensor) -> list[Tensor]:
        """Loss, hit (nan without labels) and, if there is one, the metric of each sample [B]."""
        import torch

        loss = self.each(outputs, y)
        rows = [loss, hits(outputs, y) if self.labels else torch.full_like(loss, torch.nan)]
        if self.metric is not None:
            rows.append(per_sample(self.metric(outputs, y), len(y), "metric"))
        return rows


def per_sample(values: Tensor, samples: int, what: str) -> Tensor:
    """The values, after a check that there is one for each sample.

    Raises:
        ObjectiveError: the user's function gave something else.
    """
    import torch

    given = isinstance(values, torch.Tensor)
    if not given or tuple(values.shape) != (samples,):
        found = f"a tensor {list(values.shape)}" if given else type(values).__name__
        problem = f"gives {found} for a batch of {samples}; give a value of each sample, a tensor"
        raise ObjectiveError(what, f"{problem} [{samples}]")
    return values

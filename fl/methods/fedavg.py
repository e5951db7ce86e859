"""FedAvg. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from edgesim.contracts import Grant, Phase, Stage, Tensor
from fl.method import MAX_RATE, RATE_SOURCE, STEPS_SOURCE, Method, State, param


@dataclass(frozen=True, eq=False)
class FedAvg(Method):
    """One global model: every device trains all of it for some steps, and the server takes the mean.

    What travels: all weights, down and up.

    Departs from the paper:
        A device makes ``local_steps`` mini-batch steps instead of whole epochs (Liu et al. count steps).
        The mean is uniform as in Liu, eq. (11); ``weighting: samples`` is that of McMahan et al.
    """

    source: ClassVar[str] = "McMahan et al., AISTATS 2017, Algorithm 1"
    local_steps: int = param(5, "SGD steps of a device per round", source=STEPS_SOURCE, ge=1)
    lr: float = param(0.001, "step size of SGD", source=RATE_SOURCE, gt=0, le=MAX_RATE)

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        return (Stage("train", self.work(k, self.everything, self.local_steps, rho)),)

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        mask = self.task.tensor(self.mask(state, grant))
        return (Phase(start=w.where(mask, 0.0), mask=mask, steps=self.local_steps, lr=self.lr),)

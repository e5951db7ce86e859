"""FedAvg: the method from which most others derive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from fl.contracts import Grant, Phase, Sgd, Stage, Tensor
from fl.errors import MethodError
from fl.method_base.method import MAX_RATE, RATE_SOURCE, STEPS_SOURCE, Method, State, param


def weighting_by_samples(source: str) -> Any:
    """The parameter ``weighting`` of a method whose paper weights devices by their data."""
    return param(
        "samples",
        "weight of a device in the mean: the same for all, or its number of samples",
        source=source,
        choices=("uniform", "samples"),
    )


def unless_plain_sgd(values: dict[str, Any], why: str) -> MethodError | None:
    """The conflict of a method for which a step has to be lr times a gradient.

    Args:
        values: hyper-parameters by name.
        why: what of the method needs that.
    """
    for name in ("momentum", "weight_decay", "clip"):
        if values[name]:
            problem = f"is {values[name]}, but {why} need plain SGD; leave it out"
            return MethodError(name, problem)
    return None


@dataclass(frozen=True, eq=False)
class FedAvg(Method):
    """One global model: every device trains all of it, and the server takes the mean.

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017. What travels: all weights, down and up.

    Departs from the paper:
        A device makes ``local_steps`` mini-batch steps (Liu et al. count steps); ``local_epochs``
        counts passes over its data as McMahan et al. do, the last batch of a pass being smaller.
        The mean is uniform as in Liu, eq. (11); ``weighting: samples`` is that of McMahan et al.
    """

    source: ClassVar[str] = "McMahan et al., AISTATS 2017, Algorithm 1"
    stale: ClassVar[str] = "damp"
    partial_work: ClassVar[bool] = True
    cost_by_samples: ClassVar[bool] = True
    local_steps: int = param(5, "SGD steps of a device per round", source=STEPS_SOURCE, ge=1)
    local_epochs: int | None = param(
        None,
        "passes of a device over its data per round, E; none: local_steps",
        source="McMahan et al.",
        ge=1,
    )
    lr: float = param(0.001, "step size of SGD", source=RATE_SOURCE, gt=0, le=MAX_RATE)
    lr_decay: float = param(
        1.0, "factor of the step size from round to round", source="Liu: constant", gt=0, le=1
    )
    momentum: float = param(
        0.0, "momentum of SGD, fresh in every round", source="McMahan et al.: none", ge=0, le=0.9999
    )
    weight_decay: float = param(
        0.0, "weight decay of SGD", source="McMahan et al.: none", ge=0, le=MAX_RATE
    )
    clip: float | None = param(
        None,
        "largest norm of a gradient; none: not clipped",
        source="McMahan et al.: none",
        gt=0,
        le=MAX_RATE,
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        counted = (
            {} if values.get("local_epochs") is None else {"local_steps": "local_epochs is given"}
        )
        return super().unread(values) | counted

    def steps(self, k: int) -> int:
        """SGD steps of device k per round."""
        passes = self.local_epochs
        return (
            self.local_steps
            if passes is None
            else passes * -(-int(self.task.samples[k]) // self.task.batch(k))
        )

    def samples_per_step(self, k: int) -> float:
        """Samples in a mean step: the last batch of a pass may be smaller."""
        passes = self.local_epochs
        return (
            self.task.batch(k)
            if passes is None
            else passes * int(self.task.samples[k]) / self.steps(k)
        )

    def rate(self, g: int) -> float:
        """Step size in round g."""
        return self.lr * self.lr_decay**g

    def training(self, start: Any, mask: Any, g: int, k: int, **more: Any) -> Phase:
        """The phase in which device k trains in round g.

        Args:
            start: w [P], or a function of the results of the phases before.
            mask: What is trained, bool [P].
            g: Round.
            k: Device.
            more: Further fields of the phase.
        """
        settings: dict[str, Any] = {
            "steps": self.steps(k),
            "lr": self.rate(g),
            "ragged": self.local_epochs is not None,
            "optimiser": self._sgd,
        }
        return Phase(start, mask, **settings | more)

    @cached_property
    def _sgd(self) -> Sgd:
        return Sgd(self.momentum, self.weight_decay, self.clip)

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        batch = self.samples_per_step(k)
        return (Stage("train", self.work(k, self.whole_step, self.steps(k), rho, batch)),)

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        kept = self.trained_weights(state, grant)
        if kept is self.everything:
            return (self.training(w, self._all, state.g, k),)
        mask = self.task.tensor(kept)
        return (self.training(w.where(mask, 0.0), mask, state.g, k),)

    @cached_property
    def _all(self) -> Tensor:
        return self.task.tensor(self.everything)

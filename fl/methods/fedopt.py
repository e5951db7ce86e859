"""FedOpt: an adaptive optimiser at the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fl.contracts import Tensor, Update, View
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedavg import FedAvg

REDDI = "Reddi et al., ICLR 2021, Algorithm 2"


@dataclass(frozen=True, eq=False)
class FedOpt(FedAvg):
    """FedAvg whose server steps along the mean change D by an optimiser: AvgM, Adagrad, Adam, Yogi.

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021. m <- beta1 m + (1 - beta1) D and
    w <- w + server_lr m / (sqrt(v) + tau), where v begins at tau^2 and becomes v + D^2 (adagrad),
    beta2 v + (1 - beta2) D^2 (adam) or v - (1 - beta2) D^2 sign(v - D^2) (yogi), without a
    correction of the bias. avgm, of Hsu, Qi, Brown (2019), has m <- beta1 m + D and
    w <- w + server_lr m. The moments stand in State.memo, in double precision.
    What travels: all weights, down and up.

    Departs from the paper:
        In a round from which nothing arrives the moments stay as they are.
    """

    source: ClassVar[str] = REDDI
    stale: ClassVar[str] = "damp"
    rule: str = param(
        "adam",
        "optimiser of the server",
        source=REDDI,
        choices=("adam", "yogi", "adagrad", "avgm"),
    )
    server_lr: float = param(
        0.1,
        "step size of the server, eta",
        source="our choice: Reddi et al. tune it, 0.001 to 1",
        gt=0,
        le=MAX_RATE,
    )
    beta1: float = param(
        0.9,
        "decay of the first moment; Reddi et al. have 0 for adagrad",
        source="Reddi et al., Section 5",
        ge=0,
        le=0.9999,
    )
    beta2: float = param(
        0.99, "decay of the second moment", source="Reddi et al., Section 5", ge=0, le=0.9999
    )
    tau: float = param(
        1e-3, "degree of adaptivity", source="Reddi et al., Section 5", gt=0, le=MAX_RATE
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        idle = {"avgm": ("beta2", "tau"), "adagrad": ("beta2",)}.get(values["rule"], ())
        return super().unread(values) | dict.fromkeys(idle, f"rule is {values['rule']}")

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        after = super().aggregate(state, view, updates)
        if not updates:
            return after
        old = state.w.double()
        change = after.w.double() - old
        first = state.memo.get("first", old.new_zeros(len(old)))
        if self.rule == "avgm":
            first = self.beta1 * first + change
            w = (old + self.server_lr * first).to(state.w.dtype)
            return replace(after, w=w, memo=state.memo | {"first": first})
        first = self.beta1 * first + (1 - self.beta1) * change
        second = self._second(state.memo.get("second", self.tau**2), change.square())
        step = self.server_lr * first / (second.sqrt() + self.tau)
        w = (old + step).to(state.w.dtype)
        return replace(after, w=w, memo=state.memo | {"first": first, "second": second})

    def _second(self, second: Tensor | float, square: Tensor) -> Tensor:
        """The second moment v [P] after a change of this square [P]."""
        if self.rule == "adagrad":
            return second + square
        if self.rule == "yogi":
            return second - (1 - self.beta2) * square * (second - square).sign()
        return self.beta2 * second + (1 - self.beta2) * square

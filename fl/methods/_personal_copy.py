"""A second model of every device's own beside the one that travels, as in Ditto and pFedMe."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fl.contracts import Tensor
from fl.method_base.method import State
from fl.methods.fedavg import FedAvg
from fl.models.layout import Slot


@dataclass(frozen=True, eq=False)
class PersonalCopyMethod(FedAvg):
    """The model is [w, v_k], twice the architecture's: w travels, v_k stays, and starts at w."""

    def extra(self) -> tuple[Slot, ...]:
        return (Slot("personal.model", (self.task.layout.size,), 0, "copy", "personal", -1),)

    def start(self) -> State:
        state = super().start()
        return replace(state, w=state.w[: self.task.layout.size].repeat(2))

    def personalise(self, state: State, k: int) -> Tensor:
        """v_k."""
        return state.local.get(k, state.w)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}

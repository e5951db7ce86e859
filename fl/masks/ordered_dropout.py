"""Submodels that follow from a width alone: ordered units, the same for all devices of a width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fl.contracts import Tensor, Update, View
from fl.masks import unit_masks as masks
from fl.method_base.method import State, param
from fl.method_base.submodel_method import Submodels

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Nested(Submodels):
    """A device of width s trains the first ceil(s J) of the J units of every hidden layer."""

    deploy: str = param(
        "submodel",
        "model that a device uses: the submodel of its own width, or the whole model",
        source="our choice: the submodel that it would deploy (spafl.md, section 10)",
        choices=("submodel", "global"),
    )

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.nested(self.width_of(view, k))

    def nested(self, width: float) -> Array:
        """The submodel of that width, bool [P]. Shared between calls: do not write to it."""
        if width not in self._nested:
            self._nested[width] = self.layout.expand(
                masks.prefix(self.layout, width, rounding="up")
            )
        return self._nested[width]

    @cached_property
    def _nested(self) -> dict[float, Array]:
        return {}

    # --- what is used ----------------------------------------------------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """As ever; and the server notes the width of every device [K], as it was in this round."""
        state = super().aggregate(state, view, updates)
        if self.width is not None or self.deploy == "global":
            return state
        widths = np.minimum(view.capability, np.sqrt(view.model_budget))
        return replace(state, memo=state.memo | {"width": self.task.tensor(widths)})

    def personalise(self, state: State, k: int) -> Tensor:
        """The device's submodel of the global model; before it was ever told a width, the whole model."""
        return (
            state.w
            if self.deploy == "global"
            else self._cut_out(state.w, self._width_known(state, k))
        )

    def _width_known(self, state: State, k: int) -> float:
        if self.width is not None:
            return self.width
        return float(state.memo["width"][k]) if "width" in state.memo else 1.0

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def probes(self, state: State) -> dict[str, Tensor]:
        """The whole model, and one submodel for every width that a device has."""
        widths = (
            {1.0} if "width" not in state.memo else {1.0, *state.memo["width"].unique().tolist()}
        )
        widths |= set() if self.width is None else {self.width}
        return {
            f"width {width:g}": self._cut_out(state.w, width)
            for width in sorted(widths, reverse=True)
        }

    def _cut_out(self, w: Tensor, width: float) -> Tensor:
        """w with zeros outside of a submodel; the same tensor for the same model and width."""
        if self._last.get("w") is not w:
            self._last.clear()
            self._last["w"] = w
        if width not in self._last:
            self._last[width] = w * self.task.tensor(self.nested(width)) if width < 1 else w
        return self._last[width]

    @cached_property
    def _last(self) -> dict:
        return {}

"""Submodels that follow from a width alone: the first units of every layer, and who uses which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import sqrt
from typing import Any

import numpy as np

from fl.contracts import Array, Tensor, Update, View
from fl.masks import unit_masks
from fl.method_base.method import State, param
from fl.models.layout import Layout
from fl.task import LearningTask


def width_parameter() -> Any:
    """The parameter ``width`` of methods whose devices keep as much as they can compute."""
    return param(
        None,
        "share of the units that every device keeps; none: its capability, or the root of its "
        "model budget if smaller",
        source="Diao et al., ICLR 2021 (HeteroFL)",
        gt=0,
        le=1,
    )


def width_of(width: float | None, view: View, k: int) -> float:
    """Share of the units that device k keeps; width s has about s^2 of the weights.

    Args:
        width: of every device; None: each has its own.
        view: of the round.
        k: the device.
    """
    if width is not None:
        return width
    return min(float(view.capability[k]), sqrt(float(view.model_budget[k])))


def deploy_parameter() -> Any:
    """The parameter ``deploy`` of methods whose submodels follow from a width."""
    return param(
        "submodel",
        "model that a device uses: the submodel of its own width, or the whole model",
        source="our choice: the submodel that it would deploy",
        choices=("submodel", "global"),
    )


@lru_cache(maxsize=64)
def first_units(layout: Layout, width: float) -> Array:
    """The submodel of the first ceil(width J) of the J units of every hidden layer.

    Returns:
        bool [P]; shared between calls, not to be written to.
    """
    return layout.expand(unit_masks.prefix(layout, width, rounding="up"))


@lru_cache(maxsize=1)
def cut_out(state: State, task: LearningTask) -> Callable[[float], Tensor]:
    """By width: the state's model [P] with zeros outside of the submodel.

    One tensor for all devices of a width, so that an evaluation sees them share it. A state never
    changes; only the latest one is held.
    """

    @cache
    def of_width(width: float) -> Tensor:
        if width >= 1:
            return state.w
        return state.w * task.tensor(first_units(task.layout, width))

    return of_width


@dataclass(frozen=True, eq=False)
class DeployedSubmodels:
    """Which submodel of the global model a device uses.

    Args:
        task: What is learned.
        width: Of every device; None: each has its own, noted in ``state.memo``.
        deploy: submodel | global.
    """

    task: LearningTask
    width: float | None
    deploy: str

    def with_widths(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The state with the width of every device [K], as it is in this round.

        Of a device that sent something it is the width that its job noted.
        """
        if self.width is not None or self.deploy == "global":
            return state
        widths = np.minimum(view.capability, np.sqrt(view.model_budget))
        widths[[each.job.device for each in updates]] = [each.job.note for each in updates]
        return replace(state, memo=state.memo | {"width": self.task.tensor(widths)})

    def of_device(self, state: State, k: int) -> Tensor:
        """The model [P] of device k; before its width was noted, the whole model."""
        if self.deploy == "global":
            return state.w
        noted = float(state.memo["width"][k]) if "width" in state.memo else 1.0
        return cut_out(state, self.task)(noted if self.width is None else self.width)

    def by_width(self, state: State) -> dict[str, Tensor]:
        """The whole model, and one submodel for every width that a device has."""
        noted: Iterable[float] = (
            state.memo["width"].unique().tolist() if "width" in state.memo else ()
        )
        widths = {1.0, *noted} | (set() if self.width is None else {self.width})
        return {
            f"width {width:g}": cut_out(state, self.task)(width)
            for width in sorted(widths, reverse=True)
        }

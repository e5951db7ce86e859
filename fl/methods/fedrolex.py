"""FedRolex: submodels that roll through the units from round to round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Array, View
from fl.masks.unit_masks import rolling
from fl.method_base.method import State
from fl.methods._ordered_dropout import width_of
from fl.methods.heterofl import HeteroFL


@dataclass(frozen=True, eq=False)
class FedRolex(HeteroFL):
    """Rolling submodels: in round g a device trains units g, g + 1, .. g + ceil(s J) - 1 (mod J).

    Alam, Liu, Yan, Zhang, "FedRolex: Model-Heterogeneous Federated Learning with Rolling Sub-Model
    Extraction", NeurIPS 2022. What travels: the submodel's weights, down and up; which they are
    follows from the round. Over J rounds every unit is trained equally often. A device that deploys
    a submodel uses the window that starts at 0.

    Departs from the paper:
        Mean over the holders of each weight as in the paper; the authors' program can also weight
        by update counts, and rolls the other way, which covers the same windows.
    """

    source: ClassVar[str] = "Alam et al., NeurIPS 2022, Algorithm 1"
    stale: ClassVar[str] = "damp"

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.layout.expand(rolling(self.layout, width_of(self.width, view, k), view.g))

"""eFD: federated dropout with a width of its own for every device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Array, View
from fl.masks.unit_masks import random
from fl.method_base.method import State
from fl.methods._ordered_dropout import width_of, width_parameter
from fl.methods._submodel_method import SubmodelMethod


@dataclass(frozen=True, eq=False)
class EFD(SubmodelMethod):
    """Random submodels: a device of width s trains ceil(s J) of J units of each hidden layer.

    "Extended Federated Dropout" of Horvath et al., "FjORD: Fair and Accurate Federated Learning
    under heterogeneous targets with Ordered Dropout", NeurIPS 2021, after Caldas et al. (2018).
    Every device draws its units anew in every round.
    What travels: the submodel's weights, down and up; both sides draw the same units, so that no
    indices do. Of each weight the server takes the mean over its holders.

    Departs from the paper:
        Activations are not scaled; the papers do not say whether theirs are.
        All devices use the whole model.
    """

    source: ClassVar[str] = "Horvath et al., NeurIPS 2021, Section 5; Caldas et al., 2018"
    stale: ClassVar[str] = "damp"
    width: float | None = width_parameter()

    def kept(self, state: State | None, view: View, k: int) -> Array:
        rng = self.task.streams.stream("efd", k, view.g)
        return self.layout.expand(random(self.layout, width_of(self.width, view, k), rng, "up"))

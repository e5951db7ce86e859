"""FedPer: personalisation layers that stay at their device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Array
from fl.errors import MethodError
from fl.masks.unit_masks import output_layer
from fl.methods.fedavg import FedAvg, weighting_by_samples


@dataclass(frozen=True, eq=False)
class FedPer(FedAvg):
    """The output layer, the head, stays at its device; all layers are trained together.

    Arivazhagan, Aggarwal, Singh, Choudhary, "Federated Learning with Personalization Layers", 2019.
    What travels: all weights but the head, down and up, of which the server takes the mean. The
    head stays, also when the upload was late.

    Departs from the paper:
        The head is the output layer, of a module of the user's own its classifier
        (`learning.classifier`); the paper has one or more last layers.
        A device that was never asked uses the initial head.
    """

    source: ClassVar[str] = "Arivazhagan et al., arXiv 1912.00818"
    stale: ClassVar[str] = "damp"
    weighting: str = weighting_by_samples("Arivazhagan et al.; Collins et al., ICML 2021")

    def __post_init__(self) -> None:
        if self.personal().all():
            raise MethodError("name", "needs a model with weights in front of its classifier")

    def personal(self) -> Array:
        own = not self.task.architecture.in_layers
        return self.layout.role("classifier") if own else output_layer(self.layout)

"""FedPer. Arivazhagan, Aggarwal, Singh, Choudhary, "Federated Learning with Personalization Layers", 2019."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fl.masks.unit_masks import output_layer
from fl.method_base.averaging import FedAvg, by_samples

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class FedPer(FedAvg):
    """The output layer, the head, stays at its device; all layers are trained together, and the others averaged.

    What travels: all weights but the head, down and up. The head stays, also when the upload was late.

    Departs from the paper:
        The head is the output layer; the paper has one or more last layers.
        A device that was never asked uses the initial head.
    """

    source: ClassVar[str] = "Arivazhagan et al., arXiv 1912.00818 (fedlps.md, 10.14)"
    weighting: str = by_samples("fedlps.md, 10.14 and 10.15")

    def personal(self) -> Array:
        return self._head

    @cached_property
    def _head(self) -> Array:
        return output_layer(self.layout)

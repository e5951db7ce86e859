"""FedBN: normalisation layers that stay at their device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.contracts import Array
from fl.methods.fedavg import FedAvg, weighting_by_samples


@dataclass(frozen=True, eq=False)
class FedBN(FedAvg):
    """FedAvg whose devices keep the scales and shifts of their normalisation layers.

    Li, Jiang, Zhang, Kamp, Dou, "FedBN: Federated Learning on Non-IID Features via Local Batch
    Normalization", ICLR 2021. What travels: all weights but those of normalisation layers, down and
    up. These stay, also when the upload was late.

    Departs from the paper:
        A model without normalisation layers is allowed, and is FedAvg.
        All normalisation layers stay; the authors' program goes by names and misses those of
        ResNet's shortcuts.
        Here as in all methods no running statistics are kept: a batch normalises itself, and for a
        test those of the training data of the devices that use the model are taken.
    """

    source: ClassVar[str] = "Li et al., ICLR 2021, Algorithm 1"
    stale: ClassVar[str] = "damp"
    weighting: str = weighting_by_samples("Li et al.; McMahan et al.")

    def personal(self) -> Array:
        return self.layout.where(lambda slot: slot.kind == "norm")

"""Adaptive federated pruning without personalisation: "pruning only" in the comparison of Liu et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.method_base.averaging import FedAvg
from fl.method_base.importance_pruning import Pruning


@dataclass(frozen=True, eq=False)
class PruningOnly(Pruning, FedAvg):
    """One global model, pruned at every device to the ratio that the allocator grants; nothing is personal.

    What travels: all weights down, the kept ones up.

    Departs from the paper:
        The weights are ranked by `fl.method_base.importance_pruning` as in Liu, Algorithm 1, so that the schemes differ in one thing only.
    """

    source: ClassVar[str] = (
        "Liu et al. 2023 (adaptive federated pruning), as compared in Liu et al., Section V"
    )

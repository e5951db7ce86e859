"""Adaptive federated pruning without personalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.methods._importance_pruning import ImportancePruning
from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class PruningOnly(ImportancePruning, FedAvg):
    """One global model, pruned at every device to the ratio that the allocator grants.

    "Pruning only" in the comparison of Liu et al. What travels: all weights down, the kept ones up;
    nothing is personal.

    Departs from the paper:
        The weights are ranked as in Liu, Algorithm 1, so that the schemes differ in one thing only.
        The scheme that Liu et al. compare with is hierarchical (Liu, Wang, Deng, Nallanathan, arXiv
        2305.09042); this is its case of a single edge server.
    """

    source: ClassVar[str] = (
        "Liu et al. 2023 (adaptive federated pruning), as compared in Liu et al., Section V"
    )
    stale: ClassVar[str] = "damp"

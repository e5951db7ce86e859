"""FedSim: partial personalisation, both parts in the same steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.methods.fedalt import FedAlt


@dataclass(frozen=True, eq=False)
class FedSim(FedAlt):
    """Partial personalisation: both parts in the same steps, each with its own step size.

    Pillutla et al., "Federated Learning with Partial Model Personalization", ICML 2022; Liu et al.,
    Fig. 4, "LocalSim". What travels: the shared weights u, down and up.

    Departs from the paper: as `FedAlt`. Both step counts must be equal.
    """

    source: ClassVar[str] = "Pillutla et al., ICML 2022, Algorithm 3 (FedSim)"
    stale: ClassVar[str] = "damp"
    update: ClassVar[str] = "simultaneous"

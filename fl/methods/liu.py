"""Partial model pruning and personalisation over wireless networks (Liu et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fl.method_base.method import param
from fl.methods._importance_pruning import ImportancePruning
from fl.methods.fedalt import FedAlt


@dataclass(frozen=True, eq=False)
class Liu(ImportancePruning, FedAlt):
    """Partial personalisation with the shared part pruned to the ratio that the allocator grants.

    Liu, Ratnarajah, Sellathurai, Eldar, "Adaptive Model Pruning and Personalization for Federated
    Learning over Wireless Networks". Algorithm 1: steps on v (6); warm-up of the unpruned u; the
    (1 - rho) N_u largest |u_hat - u| are kept (20), (21) in the received u; masked steps (22); mean
    over the devices that kept a weight (26).
    What travels: u down, the kept weights of u up. With the solver ``equal`` it is "equal-resource
    pruning".

    Departs from the paper (see docs/papers/liu.md):
        A weight that nobody kept keeps its old value, which (26) leaves undefined.
        The plan counts the warm-up as (24) does; ``count_warmup: false`` drops it as (46) does.
        ``update: simultaneous`` is LocalSim of Fig. 4; the warm-up then still trains u alone.
        ``importance: exact`` ranks by (19) instead of (20), and is charged its forward passes.
        The mask's own bits are free as in (25); ``accounting.mask_overhead`` charges them.
    """

    source: ClassVar[str] = "Liu et al., Algorithm 1"
    stale: ClassVar[str] = "damp"
    update: str = param(  # type: ignore[misc]  # a parameter where FedAlt has a constant
        "alternating",
        "train the personal and the shared part in turn (LocalAlt) or in the same steps (LocalSim)",
        source="Liu et al., Algorithm 1, Fig. 4",
        choices=("alternating", "simultaneous"),
    )

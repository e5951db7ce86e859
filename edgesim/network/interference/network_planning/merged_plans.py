"""The plans of sectors as one plan of their network."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edgesim.network.grants import Grants, grants_of
from edgesim.network.planning.shadow_prices import PricedPlan
from fl.contracts import Array, RoundPlan


def merged(plans: Sequence[RoundPlan], devices: Array) -> RoundPlan:
    """One plan of the plans of sectors, its grants in the order of the devices asked.

    The threshold planned for is the longest, and what band and time are worth is the sum. It is
    off from what settled plans are by as much as the sector that is most.
    """
    granted = [plan for plan in plans if len(plan.grants)]
    left_out = tuple(sorted(k for plan in plans for k in plan.infeasible))
    budget_s = max((plan.budget_s for plan in plans), default=math.inf)
    if not granted:
        return RoundPlan((), left_out, budget_s=budget_s)
    columns = zip(*(grants_of(plan).columns for plan in granted), strict=True)
    grants = Grants(*(np.concatenate(column) for column in columns))
    order = np.argsort(places_of(devices)[grants.device], kind="stable")
    prices = [plan.price for plan in granted if isinstance(plan, PricedPlan)]
    known = [each for each in prices if each is not None]
    return PricedPlan(
        Grants(*(column[order] for column in grants.columns)),
        left_out,
        float(np.fmax.reduce([plan.residual for plan in granted])),
        budget_s,
        math.fsum(plan.pruning_per_hz for plan in granted),
        math.fsum(plan.pruning_per_s for plan in granted),
        unsettled=max(plan.unsettled for plan in granted),
        price=np.concatenate(known)[order] if known else None,
    )


def places_of(devices: Array) -> Array:
    """Device -> its position among these."""
    place = np.empty(int(devices.max(initial=-1)) + 1, dtype=int)
    place[devices] = np.arange(len(devices))
    return place

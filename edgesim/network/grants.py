"""The grants of a round as columns, so that a million devices need not be a million objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgesim.network.device import Fleet
from fl.contracts import Array, Demand, Grant, RoundPlan


@dataclass(frozen=True, eq=False)
class Grants(Sequence[Grant]):
    """Columns [S] with the names of a `Grant`; an entry is one."""

    device: Array
    share: Array
    rho: Array
    cpu_hz: Array
    power_w: Array

    @property
    def columns(self) -> tuple[Array, ...]:
        return self.device, self.share, self.rho, self.cpu_hz, self.power_w

    def __len__(self) -> int:
        return len(self.device)

    def __getitem__(self, i: Any) -> Any:
        return Grant(*(column[i].item() for column in self.columns))

    def __iter__(self) -> Iterator[Grant]:
        return (
            Grant(*row) for row in zip(*(column.tolist() for column in self.columns), strict=True)
        )


NO_GRANTS = Grants(np.empty(0, dtype=int), *(np.empty(0) for _ in range(4)))


def grants_of(plan: RoundPlan) -> Grants:
    """The grants of a plan of `edgesim.network.planning.planner`; without any of no device."""
    return plan.grants if isinstance(plan.grants, Grants) else NO_GRANTS


def by_device(plan: RoundPlan, name: str, count: int) -> Array:
    """A column of a plan's grants by device [K], 0 for those without a grant.

    Args:
        plan: of a round.
        name: of the column.
        count: K, devices of the cell.
    """
    grants, values = grants_of(plan), np.zeros(count)
    values[grants.device] = getattr(grants, name)
    return values


def granted_amounts(fleet: Fleet, demand: Demand, grants: Grants) -> tuple[Array, Array, Array]:
    """Cycles, bits up and bits down of the devices of grants [K], by their pruning ratios.

    Args:
        fleet: all devices.
        demand: of those devices, and maybe of others.
        grants: of K devices.
    """
    everybody, kept = np.asarray(demand.devices, dtype=int), 1.0 - grants.rho
    order = np.argsort(everybody, kind="stable")
    here = order[np.searchsorted(everybody[order], grants.device)]
    fixed, prunable = (
        np.broadcast_to(fleet.cycles(everybody, work), everybody.shape)[here]
        for work in (demand.work_fixed, demand.work_prunable)
    )
    bits_up = demand.bits_fixed[here] + kept * demand.bits_prunable[here]
    bits_down = np.broadcast_to(np.asarray(demand.bits_down, float), everybody.shape)[here]
    return fixed + kept * prunable, bits_up, bits_down

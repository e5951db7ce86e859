"""Tiers of devices by their speed: FedAT's, which go on by themselves, and TT-Fed's time slots."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgesim.clocks.flights import Desk, Flight
from edgesim.clocks.rules import Overlapping, Windowed
from edgesim.network.cell import Cell
from fl.contracts import Array
from fl.method_base.hook_answers import demand_of
from fl.method_base.method import Method

WHOLE = 1e-9  # relative: a time that is a whole number of slots but for rounding


def job_seconds(cell: Cell, method: Method, slots: int) -> Array:
    """Time of a job of each device in its slot of the band [K], s, as it is known at the start.

    Where the method leaves the ratio to the allocator, a job is pruned to the threshold at most.

    Args:
        cell: of the run, at its start.
        method: says what taking part costs.
        slots: M, each device has 1 / M of the band.
    """
    view, channel = cell.view(0, everyone=True), cell.channel
    demand = demand_of(method, None, view, np.arange(len(cell.fleet)))
    kept, share = 1.0 - demand.rho_min, np.full(len(cell.fleet), 1.0 / slots)
    prunable_s = cell.fleet.seconds(demand.devices, demand.work_prunable, view.cpu_hz)
    now_s = cell.env.now
    power_w = channel.sent_w(share, cell.fleet.tx_power_w, now_s)
    rate_bps = channel.known_bps(now_s, np.arange(len(share)), share, power_w)
    bits = demand.bits_fixed + kept * demand.bits_prunable
    with np.errstate(divide="ignore", invalid="ignore"):
        upload_s = np.where(bits > 0.0, bits / rate_bps, 0.0)
    seconds = cell.planner.unprunable_s(demand, view) + kept * prunable_s + upload_s
    return np.where(demand.rho_max > demand.rho_min, np.minimum(seconds, cell.budget_s), seconds)


def tiers_by_speed(seconds: Array, count: int) -> tuple[int, ...]:
    """Tier of each device, 0 the fastest: groups of equal size, the first ones larger by one.

    FedAT: Chai et al., SC 2021, Section 4.1; ties by number.
    """
    order = np.argsort(seconds, kind="stable")
    tiers = np.empty(len(seconds), dtype=int)
    for tier, devices in enumerate(np.array_split(order, count)):
        tiers[devices] = tier
    return tuple(tiers.tolist())


def slots_needed(seconds: Array, slot_s: float) -> tuple[int, ...]:
    """m = ceil(T_k / DT), the slots that a job of each device takes, at least 1.

    Example:
        >>> slots_needed(np.array([0.9, 1.1, 2.0, 2.1, 3.5]), 1.0)
        (1, 2, 2, 3, 4)
    """
    counts = np.maximum(np.ceil(seconds / slot_s * (1.0 - WHOLE)), 1.0)
    return tuple(int(m) if math.isfinite(m) else 1 for m in counts.tolist())


@dataclass(frozen=True)
class TimeTriggered(Windowed):
    """A version is made every slot; a device that needs m slots starts with every m-th version.

    TT-Fed: Zhou et al., arXiv 2408.01765. With constant times it is the clock ``window``, and every
    update has the staleness m - 1.

    Args:
        needs: m of each device.
    """

    needs: tuple[int, ...] = ()

    def taken(self, desk: Desk) -> list[int]:
        waiting = [k for k, m in enumerate(self.needs) if desk.version % m]
        return [*desk.out, *desk.devices_held(), *waiting]

    def batch(self, desk: Desk) -> list[Flight] | None:
        """Of those that are back, the devices whose turn it is, early or late as they are."""
        if not desk.ticked:
            return None
        made = desk.version + 1
        return [flight for flight in desk.held if made % self.needs[flight.grant.device] == 0]


@dataclass(frozen=True)
class SpeedTiers(Overlapping):
    """Every tier has rounds of its own, and each of them makes a version: FedAT.

    Chai et al., "FedAT: A High-Performance and Communication-Efficient Federated Learning System
    with Asynchronous Tiers", SC 2021, Algorithm 2. What a version is made of:
    `edgesim.clocks.tier_models`.

    Args:
        tier_of: tier of each device, 0 the fastest.
    """

    tier_of: tuple[int, ...] = ()

    def taken(self, desk: Desk) -> list[int]:
        busy = {self.tier_of[k] for k in [*desk.out, *desk.devices_held()]}
        return [k for k, tier in enumerate(self.tier_of) if tier in busy]

    def room(self, desk: Desk) -> int | None:
        return len(self.tier_of) - len(self.taken(desk))

    def batch(self, desk: Desk) -> list[Flight] | None:
        """The round of the fastest tier that is complete: nobody of it is at work any more."""
        at_work = {self.tier_of[k] for k in desk.out}
        tiers = [self.tier_of[flight.grant.device] for flight in desk.held]
        complete = [tier for tier in tiers if tier not in at_work]
        if not complete:
            return None
        return [flight for flight, m in zip(desk.held, tiers, strict=True) if m == min(complete)]

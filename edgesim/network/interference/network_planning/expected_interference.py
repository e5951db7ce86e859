"""The interference that plans of a network count with: of what they send, or as it was met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.grants import by_device
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.measured import MeasuredInterference
from edgesim.network.interference.network_planning.load import loads
from edgesim.network.interference.sector_channel import silent
from edgesim.scenario.cells.interference_schema import LOAD, NONE
from fl.contracts import Array, Demand, RoundPlan


@dataclass(frozen=True, eq=False)
class ExpectedInterference:
    """Interference at all sectors before a round and by its plan.

    Args:
        couplings: gains at all sectors, and who serves whom.
        channel: the uplink's channel, without interference.
        fleet: all devices.
        budget_s: T_th, latency threshold, s; inf: none.
        now_s: () -> simulated time, s.
        mode: ``none``; ``full``, everybody with a grant sends all the time; ``load``, everybody
            sends for the part of the threshold that its upload takes; ``measured``, what a sector
            has met in the last round; nobody sent there: as ``full``.
        outside: interference of devices that are planned elsewhere [S], W/Hz; not with ``none``.
        measured: what was met, of ``measured``.
    """

    couplings: Couplings
    channel: Channel
    fleet: Fleet
    budget_s: float
    now_s: Callable[[], float]
    mode: str
    outside: Array | float = 0.0
    measured: MeasuredInterference | None = None

    def before(self, devices: Array) -> Array:
        """Density [S] before anything is planned: of all that are asked, over equal shares, W/Hz.

        Args:
            devices: that are asked, int [N].
        """
        if self.mode == NONE:
            return silent(self.couplings)
        asked, serving = np.zeros(len(self.couplings)), self.couplings.serving
        asked[devices] = 1.0
        sharers = np.bincount(serving, asked, self.couplings.sectors)[serving]
        share, most_w = 1.0 / np.maximum(sharers, 1.0), self.fleet.tx_power_w
        sent_w = self.channel.sent_w(share, most_w, self.now_s())
        return self._or_met(self._density(asked * sent_w))

    def of(self, plan: RoundPlan, demand: Demand) -> Array:
        """Density [S] of what a plan of a demand sends, W/Hz."""
        if self.mode == NONE:
            return silent(self.couplings)
        return self._or_met(self._density(self.mean_w(plan, demand, self.mode)))

    def mean_w(self, plan: RoundPlan, demand: Demand, mode: str) -> Array:
        """Powers [K], with ``load`` times the part of the threshold for which devices send, W."""
        count, channel = len(self.couplings), self.channel
        power_w = by_device(plan, "power_w", count)
        if mode == LOAD:
            share = by_device(plan, "share", count)
            rho = by_device(plan, "rho", count)
            bits, devices = np.zeros(count), np.asarray(demand.devices, dtype=int)
            kept = 1.0 - rho[devices]
            bits[devices] = demand.bits_fixed + kept * demand.bits_prunable
            load = self.couplings, channel, channel.path_gain, share, power_w, bits
            power_w = power_w * loads(*load, self.budget_s)
        return power_w

    def _density(self, power_w: Array) -> Array:
        """Density [S] of everybody who sends with these powers [K], and of others, W/Hz."""
        within = self.couplings.interference(power_w / self.channel.bandwidth_hz)
        return within + self.outside

    def _or_met(self, density: Array) -> Array:
        """The interference [S] that each sector has met, else this one, W/Hz."""
        if self.measured is None:
            return density
        met = self.measured.mean(self.now_s())
        return np.where(np.isnan(met), density, met)

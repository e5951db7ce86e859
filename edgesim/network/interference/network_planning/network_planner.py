"""Planning of a round of a network: one pruning problem per sector.

Sectors share nothing but the interference that a plan counts with. It depends on the plan where
powers or loads do: then all sectors are planned again with what the plans before would send, until
the shares stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from edgesim.network.grants import by_device, grants_of
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_planning.expected_interference import (
    ExpectedInterference,
)
from edgesim.network.interference.network_planning.merged_plans import merged, places_of
from edgesim.network.interference.sector_channel import DisturbedChannel, silent
from edgesim.network.interference.uplink_rates import noise_factor
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.planning.anderson_mixing import AndersonMixing
from edgesim.network.planning.planner import Planner
from edgesim.network.planning.round_uploads import SendingTimes
from edgesim.network.planning.settled_plans import SAME_GAIN, gain_change, same_gains
from edgesim.network.planning.shadow_prices import PricedPlan
from edgesim.scenario.cells.interference_schema import LOAD
from fl.contracts import Array, Demand, RoundPlan, View

# Turns of plans that depend on each other, those after which turns that swing are mixed, and the
# change of shares that ends them. Loads go half the way and end about a millionth off: who is no
# further off than gains may be has settled. Where interference stays, sectors are as cells alone,
# whose turns are not mixed: see `settled_plans.settled`.
TURNS, PLAIN_TURNS, SAME_SHARE = 80, 20, 1e-9


@dataclass(frozen=True)
class NetworkPlan(RoundPlan):
    """The allocation of a round of a network.

    Args:
        density: interference that it counts with [S], W/Hz.
        load_w: mean powers of devices that send for a part of the threshold [K], W; None: nobody
            asks.
    """

    density: Array | None = None
    load_w: Array | None = None


@dataclass(frozen=True, eq=False)
class NetworkPlanner:
    """Plans rounds of a network, sector by sector.

    Args:
        planner: of one sector, without interference.
        couplings: gains at all sectors, and who serves whom.
        expected: interference that plans count with.
        expects_load: plans say what interference they expect by their loads.
    """

    planner: Planner
    couplings: Couplings
    expected: ExpectedInterference
    expects_load: bool = False

    @property
    def gains(self) -> PlannedGains:
        """What a view takes for the channel: everybody sends, over equal shares of its sector."""
        return self.sector_planner(self.expected.before(np.arange(len(self.couplings)))).gains

    def sharers(self) -> Array:
        """How many devices the sector of each device serves, int [K]."""
        serving = self.couplings.serving
        return np.bincount(serving, minlength=self.couplings.sectors)[serving]

    def sector_planner(self, density: Array, among: int = 0) -> Planner:
        """What plans a sector in this interference [S], W/Hz."""
        channel = self.disturbed(density)
        gains = replace(self.planner.gains, channel=channel, among=among)
        return replace(self.planner, channel=channel, gains=gains)

    def disturbed(self, density: Array | None) -> DisturbedChannel:
        """The channel in this interference [S], W/Hz; None: in none."""
        channel = self.planner.channel
        density = silent(self.couplings) if density is None else density
        factor = noise_factor(channel, density)[self.couplings.serving]
        return DisturbedChannel(channel, factor)

    def lasting_channel(self, time_s: float) -> Sequence[Array] | None:
        """None: plans of a network are found anew, since interference changes."""
        return None

    def unprunable_s(self, demand: Demand, view: View, alone: bool = False) -> Array:
        """`Planner.unprunable_s` of a demand over all sectors."""
        return self.planner.unprunable_s(demand, view, alone)

    def plan(self, demand: Demand, view: View, band: float = 1.0) -> NetworkPlan:
        """Shares and pruning ratios of the devices of a demand, each in its sector.

        Args:
            demand: of the chosen devices.
            view: what the server knows when the round starts.
            band: all of it: jobs of a network do not overlap.

        Raises:
            solvers.InfeasibleError: see `Planner.plan`.
        """
        devices = np.asarray(demand.devices, dtype=int)
        sector_of = self.couplings.serving[devices]
        sectors, sector = np.unique(sector_of, return_inverse=True)
        places = [np.flatnonzero(sector == s) for s in range(len(sectors))]
        parts = [demand.at(here) for here in places]
        density, before = self.expected.before(devices), np.zeros(len(self.couplings))
        plan, needed_s = RoundPlan(()), None
        gain: Array | None = None
        known: Array | None = None
        asked: Array | None = None
        unsettled, coupled = 0.0, False
        times, mixed = SendingTimes(sector, len(parts)), AndersonMixing()
        for turn in range(1, TURNS + 1):
            planner = self.sector_planner(density, len(devices))
            if self.planner.gains.counts_with_fading:
                uploads = planner.uploads(demand, view, np.arange(len(devices)))
                share, rho, cpu_hz, power_w = self._granted(demand, view, plan, sector_of)
                window_s, known = times.next_s(uploads, rho, cpu_hz, needed_s), gain
                gain = asked = uploads.gains(share, window_s, power_w)
                if times.settled and same_gains(asked, known):
                    break
                if known is not None and turn > PLAIN_TURNS and coupled:
                    gain = mixed(known, asked)
            plans = [
                planner.plan(part, view, given=_at(gain, here), least_extra_s=extra_s)
                for part, here, extra_s in zip(parts, places, times.extra_s.tolist(), strict=True)
            ]
            needed_s = np.array([_extra_s(each) for each in plans])
            plan = merged(plans, devices)
            following = self.expected.of(plan, demand)
            shares = by_device(plan, "share", len(self.couplings))
            moved, before = np.abs(shares - before).max(initial=0.0), shares
            if gain is None and (moved < SAME_SHARE or np.array_equal(following, density)):
                break
            used, coupled = density, not np.array_equal(following, density)
            if turn >= PLAIN_TURNS and not self._unsettled(used, following, known, asked):
                break
            if gain is None and turn >= PLAIN_TURNS:
                noise = float(self.planner.channel.noise_w_per_hz or 0.0)
                density = np.maximum(mixed(noise + used, noise + following) - noise, 0.0)
            else:
                # A plan for less interference loads more: half the way, else loads would swing.
                density = 0.5 * (used + following) if self.expected.mode == LOAD else following
        else:
            unsettled, density = self._unsettled(used, following, known, asked), used
        if gain is not None and isinstance(plan, PricedPlan):
            plan = self._with_forecast(planner, demand, view, plan, gain)
        load_w = self.expected.mean_w(plan, demand, LOAD) if self.expects_load else None
        plan = replace(plan, unsettled=max(unsettled, plan.unsettled))
        return NetworkPlan(**_fields_of(plan), density=density, load_w=load_w)

    def _unsettled(
        self, used: Array, following: Array, known: Array | None, asked: Array | None
    ) -> float:
        """By what part gains differ from those that follow from a plan; 0 where that is no matter.

        Args:
            used: interference that the plan counts with [S], W/Hz.
            following: that of the plan [S], W/Hz.
            known: gains of the plan before [K], linear; None: those of the instant.
            asked: gains that follow from the plan before [K], linear.
        """
        channel = self.planner.channel
        change = gain_change(noise_factor(channel, used), noise_factor(channel, following))
        if known is not None and asked is not None:
            change = max(change, gain_change(asked, known))
        return change if change > SAME_GAIN else 0.0

    def _granted(
        self, demand: Demand, view: View, plan: RoundPlan, sector_of: Array
    ) -> tuple[Array, Array, Array, Array]:
        """(shares, ratios, clocks, powers) of a demand [S] in a plan; before that equal shares,
        and no powers.
        """
        devices = np.asarray(demand.devices, dtype=int)
        share = 1.0 / np.bincount(sector_of, minlength=self.couplings.sectors)[sector_of]
        rho = np.array(np.broadcast_to(demand.rho_min, share.shape))
        cpu_hz, place = view.cpu_hz[devices], places_of(devices)[grants_of(plan).device]
        share[place], rho[place] = grants_of(plan).share, grants_of(plan).rho
        cpu_hz[place] = grants_of(plan).cpu_hz
        power_w = np.zeros(share.shape)
        power_w[place] = grants_of(plan).power_w
        return share, rho, cpu_hz, power_w

    def _with_forecast(
        self, planner: Planner, demand: Demand, view: View, plan: PricedPlan, gain: Array
    ) -> RoundPlan:
        """The plan with what it promises of its uploads."""
        grants, price = grants_of(plan), plan.price
        if not len(grants) or price is None:
            return plan
        served = places_of(np.asarray(demand.devices, dtype=int))[grants.device]
        forecast = planner.uploads(demand, view, served).forecast(grants, gain[served], price)
        return replace(plan, forecast=forecast)


def _at(values: Array | None, places: Array) -> Array | None:
    return None if values is None else values[places]


def _extra_s(plan: RoundPlan) -> float:
    """By which a sector's threshold is stretched, s."""
    return plan.extra_s if isinstance(plan, PricedPlan) else 0.0


def _fields_of(plan: RoundPlan) -> dict[str, Any]:
    return {each.name: getattr(plan, each.name) for each in fields(RoundPlan)}

"""Planning of a round of a network: one pruning problem per sector.

Sectors share nothing but the interference that a plan counts with. It depends on the plan where
powers or loads do: then all sectors are planned again with what the plans before would send, until
the shares stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from edgesim.network.grants import Grants, grants_of
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.load import loads
from edgesim.network.interference.measured import MeasuredInterference
from edgesim.network.interference.sector_channel import DisturbedChannel, silent
from edgesim.network.interference.uplink_rates import noise_factor
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.planning.anderson_mixing import AndersonMixing
from edgesim.network.planning.planner import Planner
from edgesim.network.planning.settled_plans import SAME_GAIN, gain_change, same_gains
from edgesim.network.planning.shadow_prices import PricedPlan
from edgesim.network.round_uploads import SendingTimes
from edgesim.scenario.cells.interference_schema import FULL, LOAD, NONE
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
        now_s: () -> simulated time, s.
        interference: what plans count with. ``none``; ``full``, everybody with a grant sends all
            the time; ``load``, everybody sends for the part of the threshold that its upload takes;
            ``measured``, what a sector has met in the last round; nobody sent there: as ``full``.
        expects_load: plans say what interference they expect by their loads.
        outside: interference of devices that are planned elsewhere [S], W/Hz; not with ``none``.
        measured: what was met, of ``measured``.
    """

    planner: Planner
    couplings: Couplings
    now_s: Callable[[], float]
    interference: str = FULL
    expects_load: bool = False
    outside: Array | float = 0.0
    measured: MeasuredInterference | None = None

    @property
    def gains(self) -> PlannedGains:
        """What a view takes for the channel: everybody sends, over equal shares of its sector."""
        return self.sector_planner(self._first_density(np.arange(len(self.couplings)))).gains

    def sharers(self) -> Array:
        """How many devices the sector of each device serves, int [K]."""
        serving = self.couplings.serving
        return np.bincount(serving, minlength=self.couplings.sectors)[serving]

    def _interference(self, power_w: Array) -> Array:
        """Density [S] of everybody who sends with these powers [K], and of others, W/Hz."""
        within = self.couplings.interference(power_w / self.planner.channel.bandwidth_hz)
        return within + self.outside

    def _or_met(self, density: Array) -> Array:
        """The interference [S] that each sector has met, else this one, W/Hz."""
        if self.measured is None:
            return density
        met = self.measured.mean(self.now_s())
        return np.where(np.isnan(met), density, met)

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
        density, before = self._first_density(devices), np.zeros(len(self.couplings))
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
            following = self._or_met(self._density(plan, demand, self.interference))
            shares = _by_device(plan, "share", len(self.couplings))
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
                density = 0.5 * (used + following) if self.interference == LOAD else following
        else:
            unsettled, density = self._unsettled(used, following, known, asked), used
        if gain is not None and isinstance(plan, PricedPlan):
            plan = self._with_forecast(planner, demand, view, plan, gain)
        load_w = self._mean_w(plan, demand, LOAD) if self.expects_load else None
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
        cpu_hz, place = view.cpu_hz[devices], _places(devices)[grants_of(plan).device]
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
        served = _places(np.asarray(demand.devices, dtype=int))[grants.device]
        forecast = planner.uploads(demand, view, served).forecast(grants, gain[served], price)
        return replace(plan, forecast=forecast)

    def _first_density(self, devices: Array) -> Array:
        """Interference before anything is planned: of all that are asked, over equal shares."""
        if self.interference == NONE:
            return silent(self.couplings)
        asked, serving = np.zeros(len(self.couplings)), self.couplings.serving
        asked[devices] = 1.0
        sharers = np.bincount(serving, asked, self.couplings.sectors)[serving]
        share, most_w = 1.0 / np.maximum(sharers, 1.0), self.planner.fleet.tx_power_w
        sent_w = self.planner.channel.sent_w(share, most_w, self.now_s())
        return self._or_met(self._interference(asked * sent_w))

    def _density(self, plan: RoundPlan, demand: Demand, interference: str) -> Array:
        """Interference of what a plan sends [S], W/Hz."""
        if interference == NONE:
            return silent(self.couplings)
        return self._interference(self._mean_w(plan, demand, interference))

    def _mean_w(self, plan: RoundPlan, demand: Demand, interference: str) -> Array:
        """Powers of devices, with ``load`` times the part of the threshold for which they send."""
        count, channel = len(self.couplings), self.planner.channel
        power_w = _by_device(plan, "power_w", count)
        if interference == LOAD:
            share = _by_device(plan, "share", count)
            rho = _by_device(plan, "rho", count)
            bits, devices = np.zeros(count), np.asarray(demand.devices, dtype=int)
            kept = 1.0 - rho[devices]
            bits[devices] = demand.bits_fixed + kept * demand.bits_prunable
            load = self.couplings, channel, channel.path_gain, share, power_w, bits
            power_w = power_w * loads(*load, self.planner.budget_s)
        return power_w


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
    order = np.argsort(_places(devices)[grants.device], kind="stable")
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


def _places(devices: Array) -> Array:
    """Device -> its position among these."""
    place = np.empty(int(devices.max(initial=-1)) + 1, dtype=int)
    place[devices] = np.arange(len(devices))
    return place


def _at(values: Array | None, places: Array) -> Array | None:
    return None if values is None else values[places]


def _extra_s(plan: RoundPlan) -> float:
    """By which a sector's threshold is stretched, s."""
    return plan.extra_s if isinstance(plan, PricedPlan) else 0.0


def _by_device(plan: RoundPlan, name: str, count: int) -> Array:
    """A column of a plan's grants by device [K], 0 for those without a grant."""
    grants, values = grants_of(plan), np.zeros(count)
    values[grants.device] = getattr(grants, name)
    return values


def _fields_of(plan: RoundPlan) -> dict[str, Any]:
    return {each.name: getattr(plan, each.name) for each in fields(RoundPlan)}

"""Planning of a round: the devices' demand as a pruning problem, its solution as grants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.flows.ideal_downlink import Downlink, IdealDownlink
from edgesim.network.grants import Grants
from edgesim.network.hardware.clock_levels import ClockLevels
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.planning.pruning_problem import pruning_problem
from edgesim.network.planning.round_uploads import RoundUploads, SendingTimes
from edgesim.network.planning.settled_plans import Turn, settled, settled_at_instant
from edgesim.network.planning.shadow_prices import PricedPlan, rate_prices, slopes
from edgesim.network.planning.solution_grants import on_clock_levels, solution_grants
from edgesim.network.planning.stretched_threshold import allocate, refuse_late
from fl.contracts import Array, Demand, RoundPlan, View
from solvers import (
    Allocation,
    InfeasibleError,
    InvalidAllocationError,
    PruningProblem,
    UncertifiedError,
)

LEAST_BAND = 1e-6  # part of the band with less than which nobody starts
SHORTEST_S = 1e-9  # slack that a device keeps whose fixed work alone exceeds the threshold, s
Allocator = Callable[[PruningProblem], Allocation]


class RoundPlanner(Protocol):
    """What plans rounds, of one cell or of a network of sectors; see `Planner`."""

    @property
    def gains(self) -> PlannedGains: ...
    def plan(self, demand: Demand, view: View, band: float = 1.0) -> RoundPlan: ...
    def lasting_channel(self, time_s: float) -> Sequence[Array] | None: ...
    def unprunable_s(self, demand: Demand, view: View, alone: bool = False) -> Array: ...


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans rounds of one cell.

    Args:
        allocator: solves the pruning problem of a round.
        channel: the uplink's channel, as it is when the round starts.
        fleet: all devices.
        downlink: how long the model takes to arrive.
        budget_s: T_th, latency threshold, s; inf: none.
        when_infeasible: ``stretch`` plans for the least threshold that fits the band where T_th is
            too short; ``stop`` raises.
        gains: what the plan takes for the channel.
        levels: clocks that the processors have; None: every one.

    Raises:
        ValueError: another word for ``when_infeasible``.
    """

    allocator: Allocator
    channel: Channel
    fleet: Fleet
    downlink: Downlink
    budget_s: float
    when_infeasible: str
    gains: PlannedGains
    levels: ClockLevels | None = None

    def __post_init__(self) -> None:
        if self.when_infeasible not in ("stretch", "stop"):
            raise ValueError(
                f"when_infeasible is {self.when_infeasible}; allowed are stretch and stop"
            )

    def plan(
        self,
        demand: Demand,
        view: View,
        band: float = 1.0,
        given: Array | None = None,
        least_extra_s: float = 0.0,
    ) -> RoundPlan:
        """Shares b, Liu, eq. (54), and pruning ratios rho, eq. (58), of the devices of a demand.

        Devices that cannot finish their unprunable work in time (A_k <= 0), or whose rate is 0, are
        left out by number.

        Args:
            demand: bits and work of the chosen devices, with bounds of their pruning ratios.
            view: what the server knows when the round starts.
            band: beta, what is not promised to devices at work; less than the whole band only with
                gains of the instant, as clocks refuse others whose jobs overlap. Where the others
                do not fit into it, none of them starts: the plan is empty.
            given: gains to plan with [S], linear; None: found with the plan, and forecast with it.
            least_extra_s: by which the threshold is stretched at least, s.

        Raises:
            solvers.InfeasibleError: the least shares do not fit, and ``when_infeasible`` is stop.
        """
        if band < LEAST_BAND:
            return RoundPlan((), budget_s=self.budget_s)
        devices = np.asarray(demand.devices, dtype=int)
        fixed_s, slack_s, before_s = self._slack(demand, view)
        served = np.flatnonzero((slack_s > 0.0) & (view.rate_bps[devices] > 0.0))
        left_out = tuple(np.delete(devices, served).tolist())
        if not served.size:
            return RoundPlan((), left_out, budget_s=self.budget_s)
        uploads, times = self.uploads(demand, view, served), SendingTimes()
        here, full_hz = devices[served], view.cpu_hz[devices[served]]
        if given is None:
            window_s = times.next_s(uploads, demand.rho_min[served], full_hz)
            gain = uploads.gains(band / served.size, window_s)
        else:
            gain = given[served]
        about = self.channel, self.fleet, demand, view, served, slack_s, fixed_s
        threshold = self.budget_s, self.when_infeasible

        def turn(gain: Array, least_extra_s: float) -> Turn:
            problem = pruning_problem(*about, gain, band)
            if band < 1.0:  # beside promises nothing is stretched: who does not fit waits
                return Turn(problem, gain, self.allocator(problem), 0.0)
            answer, extra_s = allocate(self.allocator, problem, *threshold, before_s, least_extra_s)
            return Turn(problem, gain, answer, extra_s)

        try:
            found = turn(gain, least_extra_s)
            if given is None and self.gains.counts_with_fading:
                found = settled(found, turn, uploads, times, full_hz)
            elif given is None and self.gains.follow_shares:
                found = settled_at_instant(found, turn, uploads, window_s, band)
        except InfeasibleError as short:
            if band < 1.0:
                return RoundPlan((), budget_s=self.budget_s)
            raise short.of(here) from short
        except (UncertifiedError, InvalidAllocationError) as off:
            raise off.of(here) from off
        if band < 1.0:
            return self._beside_promises(found, here, left_out, demand, view, band)
        problem, gain, answer, extra_s, unsettled = found
        if self.when_infeasible == "stop":
            refuse_late(problem, answer, here, before_s, self.budget_s)
        grants = self._granted(here, found, demand, view, before_s)
        residual, budget_s = float(answer.certificate.residual), self.budget_s + extra_s
        per_hz, per_s = slopes(answer, self.channel.bandwidth_hz, extra_s)
        planned = (grants, left_out, residual, budget_s, per_hz, per_s)
        if given is not None:
            return PricedPlan(*planned, price=rate_prices(answer, extra_s), extra_s=extra_s)
        forecast = None
        if self.gains.counts_with_fading:
            forecast = uploads.forecast(grants, gain, rate_prices(answer, extra_s))
        return RoundPlan(*planned, forecast, unsettled)

    def _slack(self, demand: Demand, view: View) -> tuple[Array, Array, float]:
        """(unprunable time [S], A_k [S], what A_k has of time beyond T_th), s.

        Where the method fixes the ratio a device is late, and never left out: everybody gets the
        time by which such a device's fixed work exceeds the threshold, if it ever ends.
        """
        fixed_s = self.unprunable_s(demand, view)
        slack_s = self.budget_s - fixed_s
        decided = np.equal(demand.rho_min, demand.rho_max) & np.isfinite(fixed_s)
        before_s = max(0.0, float((SHORTEST_S - slack_s).max(where=decided, initial=0.0)))
        return fixed_s, slack_s + before_s, before_s

    def lasting_channel(self, time_s: float) -> Sequence[Array] | None:
        """What plans take for the channel, so long as it stays: rounds that ask the same have the
        same plan then. None: it changes with every instant.
        """
        if self.gains.counts_with_fading and self.channel.by_blocks:
            return self.channel.large_scale_at(time_s)
        return None

    def _beside_promises(
        self,
        found: Turn,
        devices: Array,
        left_out: tuple[int, ...],
        demand: Demand,
        view: View,
        band: float,
    ) -> RoundPlan:
        """The plan of newcomers: the same problem with B replaced by beta B, b = beta b'."""
        grants, answer = self._granted(devices, found, demand, view, band=band), found.answer
        residual = float(answer.certificate.residual)
        per_hz, per_s = slopes(answer, self.channel.bandwidth_hz)
        planned = (grants, left_out, residual, self.budget_s, per_hz, per_s)
        return RoundPlan(*planned, unsettled=found.unsettled)

    def unprunable_s(self, demand: Demand, view: View, alone: bool = False) -> Array:
        """Time [S] that no pruning shortens, s: the download and the unprunable work.

        Args:
            demand: of the devices.
            view: what the server knows when the round starts.
            alone: of each device if no other is asked.
        """
        devices = np.asarray(demand.devices, dtype=int)
        compute_s = self.fleet.seconds(devices, demand.work_fixed, view.cpu_hz)
        return compute_s + self._download_s(demand, alone) + self.channel.upload_lag_s

    def _download_s(self, demand: Demand, alone: bool = False) -> Array:
        """Time [S] until the model is there, s."""
        devices = np.asarray(demand.devices, dtype=int)
        bits_down = np.broadcast_to(np.asarray(demand.bits_down, dtype=float), devices.shape)
        seconds = self.downlink.alone_s if alone else self.downlink.seconds
        return seconds(bits_down, devices, self.gains)

    def uploads(self, demand: Demand, view: View, served: Array) -> RoundUploads:
        """The uploads of the devices of a demand at these positions."""
        eps = self.gains.probability(served.size, not isinstance(self.downlink, IdealDownlink))
        download_s = self._download_s(demand) + self.channel.upload_lag_s
        return RoundUploads(
            self.gains, self.fleet, demand, view, served, download_s, self.budget_s, eps
        )

    def _granted(
        self,
        devices: Array,
        found: Turn,
        demand: Demand,
        view: View,
        before_s: float = 0.0,
        band: float = 1.0,
    ) -> Grants:
        """What a solution grants, with clocks that the processors have."""
        problem, answer = found.problem, found.answer
        grants = solution_grants(self.channel, self.fleet, devices, answer, view, band)
        if self.levels is None:
            return grants
        spare_s = problem.slack_s - before_s - problem.finish_s(answer.share, answer.rho)
        return on_clock_levels(grants, self.levels, self.fleet, demand, view, spare_s)

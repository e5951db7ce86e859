"""A cell: its devices, its links and its band. It answers `view` and `allocate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.network.device import Device, Fleet
from edgesim.network.energy_ledger import Ledger
from edgesim.network.grants import Grants
from edgesim.network.link import Link, Uplink
from edgesim.network.topology import devices_of, star
from fl.contracts import Array, Demand, RoundPlan, Streams, View
from solvers import Allocation, EnergyTerms, InfeasibleError, PruningProblem
from solvers.deadline_feasibility import seconds_rounded_up

if TYPE_CHECKING:
    import networkx

SHORTEST_S = 1e-9  # what is left of a threshold that a download of its own exceeds, s


class Cell:
    """One cell and everything physical in it.

    Args:
        allocator: PruningProblem -> Allocation.     budget_s: the latency threshold T_th, s; inf: none.
        when_infeasible: ``stretch`` plans for the least threshold that is feasible where T_th is too short for the
            band; ``stop`` lets solvers.InfeasibleError through.
        samples: training samples D_k [K].     streams: for availability and failures.
        capability: g -> z_k [K] in round g; None: the fleet's, in every round.
    """

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        fleet: Fleet,
        allocator: Callable[[PruningProblem], Any],
        uplink: Uplink,
        downlink: Link,
        samples: Any,
        streams: Streams,
        budget_s: float = math.inf,
        when_infeasible: str = "stretch",
        capability: Callable[[int], Array] | None = None,
    ) -> None:
        if when_infeasible not in ("stretch", "stop"):
            raise ValueError(f"when_infeasible is {when_infeasible}; allowed are stretch and stop")
        self.env, self.channel, self.fleet, self.uplink, self.downlink = (
            env,
            channel,
            fleet,
            uplink,
            downlink,
        )
        self.allocator, self.budget_s, self.when_infeasible = (
            allocator,
            float(budget_s),
            when_infeasible,
        )
        self.samples, self.streams = np.asarray(samples), streams
        self.capability = capability or (lambda g: fleet.capability)
        self.ledger = Ledger(fleet)

    @cached_property
    def topology(self) -> networkx.Graph:
        """Who is connected to whom; made when somebody asks, like the devices in it."""
        return star(len(self.fleet))

    @cached_property
    def devices(self) -> Mapping[int, Device]:
        return {k: self.fleet.device(k) for k in devices_of(self.topology)}

    def view(self, g: int, everyone: bool = False) -> View:
        """What the server knows when round g starts: h_k as r_k, z_k f_k, D_k, and who is there."""
        here = np.ones(len(self.fleet), dtype=bool)
        if not everyone and np.any(self.fleet.availability < 1.0):
            here = (
                self.streams.stream("availability", round=g).random(len(self.fleet))
                < self.fleet.availability
            )
        capability = self.capability(g)
        return View(
            g=g,
            now_s=self.env.now,
            idle=np.flatnonzero(here),
            rate_bps=self.channel.rate_bps(
                1.0, self.fleet.tx_power_w, self.channel.gains(self.env.now)
            ),
            cpu_hz=self.fleet.cpu_hz * capability,
            samples=self.samples,
            budget_s=self.budget_s,
            capability=capability,
            model_budget=self.fleet.model_budget,
        )

    def failures_s(self, g: int) -> Array:
        """When each device [K] would fail after the start of round g, s: exponential; inf where none can."""
        rate_hz = self.fleet.failure_rate_hz
        if not np.any(rate_hz > 0.0):
            return np.full(len(self.fleet), np.inf)
        waits = self.streams.stream("failure", round=g).standard_exponential(len(self.fleet))
        return np.divide(waits, rate_hz, out=np.full(len(self.fleet), np.inf), where=rate_hz > 0.0)

    def allocate(self, demand: Demand, view: View) -> RoundPlan:
        """Shares b_k (54) and pruning ratios rho_k (58) for what the chosen devices demand.

        Devices that cannot finish their unprunable work in time (A_k <= 0), or are out of reach, are left out by name.

        Raises:
            solvers.InfeasibleError: the least shares do not fit into the band and ``when_infeasible`` is stop.
        """
        devices = np.asarray(demand.devices, dtype=int)
        slack_s = self.budget_s - self.unprunable_s(demand, view)  # A_k of the digest
        decided = np.equal(
            demand.rho_min, demand.rho_max
        )  # by the method: such a device is late, never left out
        before_s = max(
            0.0, float((SHORTEST_S - slack_s).max(where=decided, initial=0.0))
        )  # a broadcast, for instance
        slack_s = slack_s + before_s
        served = np.flatnonzero((slack_s > 0.0) & (view.rate_bps[devices] > 0.0))
        left_out = tuple(np.delete(devices, served).tolist())
        if not served.size:
            return RoundPlan((), left_out, budget_s=self.budget_s)
        problem, extra_s = self._problem(demand, view, served, slack_s), 0.0
        try:
            answer = self.allocator(problem)
        except InfeasibleError as short:
            extra_s = before_s + short.extra_s
            if self.when_infeasible == "stop":
                message = f"the threshold of {self.budget_s:g} s is {seconds_rounded_up(extra_s)} s too short"
                raise InfeasibleError(
                    message if before_s else str(short), short.devices, extra_s
                ) from short
            answer = self.allocator(self._problem(demand, view, served, slack_s + short.extra_s))
        if self.when_infeasible == "stop":
            self._refuse_late(problem, answer, devices[served], before_s)
        grants = self._grants(devices[served], answer, view)
        plan = RoundPlan(
            grants, left_out, float(answer.certificate.residual), self.budget_s + extra_s
        )
        return plan if extra_s else replace(plan, **self._slopes(answer))

    def _slopes(self, answer: Allocation) -> dict[str, float]:
        """What a little more band for the uplink, or time, would be worth, where the allocator minimises the pruning.

        Unknown where the plan had to be stretched: more band would shorten it, and nobody would be pruned less.
        """
        if not answer.is_differentiable:
            return {}
        worth = answer.sensitivity(self.channel.bandwidth_hz)
        return {"pruning_per_hz": worth.per_hz, "pruning_per_s": worth.per_s}

    def unprunable_s(self, demand: Demand, view: View) -> Array:
        """Time that no pruning saves [S], s: the work that cannot be pruned, and the download."""
        devices = np.asarray(demand.devices, dtype=int)
        bits_down = np.broadcast_to(np.asarray(demand.bits_down, dtype=float), devices.shape)
        compute_s = self.fleet.seconds(devices, demand.work_fixed, view.cpu_hz)
        return compute_s + self.downlink.seconds(bits_down, devices)

    def _problem(self, demand: Demand, view: View, served: Array, slack_s: Array) -> PruningProblem:
        """The pruning problem of the devices at the positions ``served`` of the demand."""
        everybody = np.asarray(demand.devices, dtype=int)
        devices = everybody[served]
        return PruningProblem(
            bits=demand.bits_prunable[served],
            compute_s=self.fleet.seconds(everybody, demand.work_prunable, view.cpu_hz)[served],
            slack_s=slack_s[served],
            rate_bps=view.rate_bps[devices],
            weight=demand.weight[served],
            rho_min=demand.rho_min[served],
            rho_max=demand.rho_max[served],
            bits_fixed=demand.bits_fixed[served],
            snr=self._snr(devices),
            before_s=self.unprunable_s(demand, view)[served],
            energy=self._energy_terms(demand, view, served),
        )

    def _snr(self, devices: Array) -> Array | None:
        """Signal-to-noise ratio over the whole band [S] where noise is a density; a fixed power asks for none."""
        return (
            None
            if self.channel.noise_w is not None
            else self.fleet.tx_power_w[devices] * self._gain_per_w(devices)
        )

    def _gain_per_w(self, devices: Array) -> Array:
        """Signal-to-noise ratio over the whole band per watt sent [S], 1/W."""
        noise_w = self.channel.noise_w or self.channel.noise_w_per_hz * self.channel.bandwidth_hz
        return self.channel.gains(self.env.now)[devices] / noise_w

    def _energy_terms(self, demand: Demand, view: View, served: Array) -> EnergyTerms:
        """What the joules of the served devices depend on, with all of the work at rho_min."""
        everybody = np.asarray(demand.devices, dtype=int)
        prunable, fixed = (
            self.fleet.cycles(everybody, w) for w in (demand.work_prunable, demand.work_fixed)
        )
        devices = everybody[served]
        return EnergyTerms(
            cycles=np.broadcast_to(fixed + (1.0 - demand.rho_min) * prunable, everybody.shape)[
                served
            ],
            kappa=self.fleet.capacitance[devices],
            f_min_hz=self.fleet.min_cpu_hz[devices] * view.capability[devices],
            f_max_hz=view.cpu_hz[devices],
            p_max_w=self.fleet.tx_power_w[devices],
            gain=self._gain_per_w(devices),
        )

    def _refuse_late(
        self, problem: PruningProblem, answer: Any, devices: Array, before_s: float
    ) -> None:
        """Raise InfeasibleError where a plan is late that an allocator without a bound on time (`equal`) has made."""
        over_s = problem.finish_s(answer.share, answer.rho) - (problem.slack_s - before_s)
        late = np.flatnonzero(over_s > 1e-6 * self.budget_s)
        if late.size:
            names, worst_s = ", ".join(map(str, devices[late])), float(over_s.max())
            message = f"devices {names} would be up to {worst_s:.6g} s later than the threshold of {self.budget_s:g} s"
            raise InfeasibleError(message, tuple(devices[late].tolist()), worst_s)

    def _grants(self, devices: Array, answer: Any, view: View) -> Grants:
        share = np.asarray(answer.share)
        share = (
            share / max(1.0, share.sum()) if share.sum() > 1.0 + 1e-12 else share
        )  # an allocator's own rounding
        cpu_hz = view.cpu_hz[devices] if answer.cpu_hz is None else answer.cpu_hz
        power_w = self.fleet.tx_power_w[devices] if answer.power_w is None else answer.power_w
        return Grants(devices, share, np.asarray(answer.rho), cpu_hz, power_w)

    def begin_round(self, plan: RoundPlan) -> None:
        """Reserve the band for the round and tune the listeners in."""
        self.uplink.round_begins(plan.grants)
        self.downlink.round_begins(plan.grants)

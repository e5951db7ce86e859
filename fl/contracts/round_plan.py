"""What a round is planned from, and the plan: what the server sees, and who is asked for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isnan
from typing import Any

import numpy as np

from fl.contracts.basic_types import Array


@dataclass(frozen=True)
class Work:
    """Computation, before a processor turns it into cycles. Scalars, or arrays [S] in a Demand.

    Args:
        weight_steps: weights x SGD steps, Liu, eq. (8).
        flops: floating point operations; 1 multiply-add counts 2.
    """

    weight_steps: Any = 0.0
    flops: Any = 0.0


@dataclass(frozen=True)
class Stage:
    """A named part of a device's computation: personal, warm-up, global, train."""

    name: str
    work: Work


@dataclass(frozen=True)
class View:
    """What the server knows when round g starts, and nothing else.

    Args:
        g: number of the round: the version of the model that is handed out.
        now_s: simulated time, s.
        idle: devices that are present and free, int [A].
        rate_bps: uplink rate over the whole band, bit/s [K]: r_k of Liu (9) with b = 1.
        cpu_hz: processor frequency that each device gives in this round, Hz [K].
        samples: training samples D_k, int [K].
        budget_s: latency threshold T_th, s; inf where the scenario sets none.
        capability: z_k in (0, 1] [K], share of its processor that a device gives; part of cpu_hz.
        model_budget: gamma_k in (0, 1] [K], largest share of the parameters that a device holds.
        turn: how often the server has handed out jobs before.
        handed_out: how many jobs that were, where jobs overlap.
        wanted: how many devices may start now; None: all that are idle.
        in_flight: devices that are at work on an earlier job, int [F]; none of them is idle.
        battery_j: energy in the battery of each device [K], J; inf: it has no battery. None: not
            known.
    """

    g: int
    now_s: float
    idle: Array
    rate_bps: Array
    cpu_hz: Array
    samples: Array
    budget_s: float
    capability: Array
    model_budget: Array
    turn: int = 0
    handed_out: int = 0
    wanted: int | None = None
    in_flight: Array = field(default_factory=lambda: np.empty(0, dtype=int))
    battery_j: Array | None = None

    @property
    def occasion(self) -> int:
        """Number that names what is drawn when jobs are handed out: with rounds that of the round.

        Where jobs overlap, several are handed out of one version: each time others are drawn.
        """
        return self.turn or self.g

    def places(self, count: int | None) -> int:
        """How many devices to ask: those that the clock wants, or else the method's own count.

        A clock that asks for more than the method needs wants more: ``overcommit``.

        Args:
            count: the method's participants; None: no limit.
        """
        limits = (len(self.idle), count if self.wanted is None else self.wanted)
        return min(limit for limit in limits if limit is not None)


@dataclass(frozen=True)
class Demand:
    """What taking part costs each selected device, affine in its pruning ratio rho.

    bits(rho) = bits_fixed + (1 - rho) bits_prunable, and the same for the work. Equal bounds mean
    that the method chose the ratio; open bounds leave it to the allocator.

    Args:
        devices: their numbers, int [S].
        bits_fixed: upload that no pruning saves, bit [S].
        bits_prunable: upload that rho = 1 would save, bit [S].
        work_fixed: computation that no pruning saves, [S] each.
        work_prunable: computation that rho = 1 would save, [S] each.
        rho_min: least allowed ratio [S].
        rho_max: largest allowed ratio [S].
        weight: w_k of the objective sum_k w_k rho_k, [S].
        bits_down: download, bit, [S] or one number.
    """

    devices: Array
    bits_fixed: Array
    bits_prunable: Array
    work_fixed: Work
    work_prunable: Work
    rho_min: Array
    rho_max: Array
    weight: Array
    bits_down: Any = 0.0

    def at(self, places: Array) -> Demand:
        """The demand of the devices at some positions, int or bool."""

        def part(values: Any) -> Any:
            if isinstance(values, Work):
                return Work(part(values.weight_steps), part(values.flops))
            return np.broadcast_to(np.asarray(values), len(self.devices))[places]

        return Demand(*(part(getattr(self, each.name)) for each in fields(self)))

    def without(self, devices: Array) -> Demand:
        """The demand of all other devices than these."""
        return self.at(~np.isin(self.devices, devices))


@dataclass(frozen=True)
class Grant:
    """What one device may use in a round: one row of a RoundPlan.

    Args:
        device: k.
        share: b_k, share of the band in [0, 1].
        rho: pruning ratio.
        cpu_hz: processor frequency, Hz.
        power_w: transmit power, W.
    """

    device: int
    share: float
    rho: float
    cpu_hz: float
    power_w: float


@dataclass(frozen=True, eq=False)
class UploadForecast:
    """What a plan promises of uploads whose channel changes on the way, in the order of the grants.

    Args:
        rate_bps: rate that is planned for [S], bit/s.
        late: probability that the upload ends after the threshold [S].
        pruning_per_late: derivative of sum_k w_k rho_k by the late share that is accepted of each
            device [S]; nan where the plan is made for no quantile, or has no shadow prices.
    """

    rate_bps: Array
    late: Array
    pruning_per_late: Array


@dataclass(frozen=True)
class RoundPlan:
    """The allocation of one round.

    Args:
        grants: one per device that takes part.
        infeasible: devices that cannot meet the budget and are left out.
        residual: worst relative KKT residual of the certificate.
        budget_s: threshold planned for, s: T_th, or the least feasible one where T_th is too short.
        pruning_per_hz: derivative of sum_k w_k rho_k by the uplink bandwidth, 1/Hz.
        pruning_per_s: the same by the threshold, 1/s. Both are nan where the allocator gives no
            shadow prices or the threshold was stretched.
        forecast: of the uploads, where the plan counts with fading; None: planned for the instant.
        unsettled: by what part that which it takes for the channel still differs from that which
            follows from it, where the turns of such a plan were used up; 0: it has settled.
        too_weak: those of the infeasible whose batteries hold less than their jobs take -> that, J.
    """

    grants: Sequence[Grant]
    infeasible: tuple[int, ...] = ()
    residual: float = float("nan")
    budget_s: float = float("inf")
    pruning_per_hz: float = float("nan")
    pruning_per_s: float = float("nan")
    forecast: UploadForecast | None = None
    unsettled: float = 0.0
    too_weak: Mapping[int, float] = field(default_factory=dict)

    def after(self, before: RoundPlan) -> RoundPlan:
        """This plan with the numbers of all plans of its version.

        The worst residual, the longest threshold and the sums of the slopes. A plan of nobody has
        no certificate, and adds nothing.

        Args:
            before: those before it in the version, put together in this way.
        """
        plan = replace(
            self,
            budget_s=max(self.budget_s, before.budget_s),
            # one that has not settled is said, whatever the others of its version have done
            unsettled=max(self.unsettled, before.unsettled),
        )
        if isnan(before.residual):
            return plan
        own = (self.residual, self.pruning_per_hz, self.pruning_per_s)
        residual, per_hz, per_s = (0.0, 0.0, 0.0) if isnan(self.residual) else own
        return replace(
            plan,
            residual=max(residual, before.residual),
            pruning_per_hz=per_hz + before.pruning_per_hz,
            pruning_per_s=per_s + before.pruning_per_s,
        )

"""The pruning problem of one round: its numbers, its bounds, and the least pruning in time.

Symbols of Liu et al.: q bit, G s, A s, r bit/s, w weight, b share, rho pruned share. Besides the
paper, this problem has bounds on rho and bits f that are sent whatever is pruned (a mask):

    (1 - rho) (G + q / R) + f / R <= A          the deadline, Liu, eqs. (28), (46)
    rho(b) = 1 - (A R - f) / (R G + q)           the least pruning that meets it, Liu, eq. (47)

with the rate R = b r where noise is a fixed power, Liu, eq. (9), and a concave R(b) where it is a
density (`solvers.rates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from solvers.arrays import (
    FINITE,
    Array,
    Mask,
    broadcast,
    read_only,
    require,
    require_between,
    require_positive,
)
from solvers.energy_terms import EnergyTerms
from solvers.problem_checks import level_table
from solvers.rates import TINY, DeviceRates, EfficiencyLaw

FULL_BAND = 1.0 - 2e-15  # shares that add up to this fill the band but for rounding
FEASIBILITY_TOLERANCE = 1e-9  # a bound exceeded by no more, relative to it, counts as kept
SAME_SHARE = 1e-12  # relative difference of shares that counts as none
RHO_STEPS = 2.0**52  # rho is rounded up to a multiple of its inverse, the spacing of doubles at 1


@dataclass(frozen=True, eq=False, init=False)
class PruningProblem(DeviceRates):
    """Minimise sum_k w_k rho_k within the band and the deadline: Liu, eqs. (47), (53).

    The bounds of rho and b that the closed form (54) of the paper leaves out are kept. Every
    argument is an array [K] or a number for all devices; at least one of them decides K.

    Args:
        bits: upload of the unpruned global part q, bit, >= 0.
        compute_s: its computing time G, s, >= 0.
        slack_s: time left after all unprunable work A, s. A <= 0 marks a device that cannot take
            part; inf (no deadline) is not understood by every method.
        rate_bps: rate over the whole band r, bit/s, > 0.
        weight: w of the objective, > 0; None is 1.
        rho_min: least pruned share, between 0 and rho_max.
        rho_max: largest pruned share, at most 1.
        bits_fixed: bits that are sent whatever is pruned f, bit, >= 0.
        snr: p h / (N0 B), signal-to-noise ratio over the whole band where noise is a density and
            only that in the share counts. None: noise of a fixed power, the rate is linear.
        law: spectral efficiency of link adaptation as a function of the ratio within the share,
            `solvers.rate_laws`; needs snr, and rate_bps is then what it gives over the whole
            band. None: log2(1 + ratio).
        full_power_share: the least share with which a device sends with all its power; with less,
            power falls with the share, as under 3GPP TS 38.213, clause 7.1.1. Above 0 and at most
            1; needs snr, and rate_bps is that of the whole band with all power. None: all power
            whatever the share.
        levels: the allowed values of rho, [L] for all or [K, L] padded with nan; those between
            the bounds count, and the bounds move to the outermost of them. None: all values.
        energy: clocks and powers, for the method `energy`.
        before_s: time of the work before that of these fields, s, for the method `latency`.
            None: T_th - A, with one T_th for all.

    Raises:
        ValueError: names the field, the device, what was given and what is allowed.
    """

    bits: Array
    compute_s: Array
    slack_s: Array
    rate_bps: Array
    weight: Array
    rho_min: Array
    rho_max: Array
    bits_fixed: Array
    snr: Array | None
    law: EfficiencyLaw | None
    levels: Array | None
    energy: EnergyTerms | None
    before_s: Array | None
    full_power_share: Array | None

    def __init__(
        self,
        bits: ArrayLike,
        compute_s: ArrayLike,
        slack_s: ArrayLike,
        rate_bps: ArrayLike,
        weight: ArrayLike | None = None,
        rho_min: ArrayLike = 0.0,
        rho_max: ArrayLike = 1.0,
        bits_fixed: ArrayLike = 0.0,
        snr: ArrayLike | None = None,
        levels: ArrayLike | None = None,
        energy: EnergyTerms | None = None,
        before_s: ArrayLike | None = None,
        law: EfficiencyLaw | None = None,
        full_power_share: ArrayLike | None = None,
    ) -> None:
        given = {"bits": bits, "compute_s": compute_s, "slack_s": slack_s, "rate_bps": rate_bps}
        given |= {"weight": 1.0 if weight is None else weight, "bits_fixed": bits_fixed}
        given |= {"rho_min": rho_min, "rho_max": rho_max}
        optional = {"snr": snr, "before_s": before_s, "full_power_share": full_power_share}
        given |= {name: value for name, value in optional.items() if value is not None}
        columns = vars(self)
        fixed = {"levels": None, "energy": energy, "law": law}
        columns.update(optional | fixed | broadcast(given))
        if law is not None and snr is None:
            raise ValueError("law is given without snr; a law of the ratio needs both.")
        if full_power_share is not None:
            if snr is None:
                raise ValueError("full_power_share is given without snr; power control needs both.")
            require_positive("full_power_share", columns["full_power_share"])
            require_between("full_power_share", columns["full_power_share"], 0.0, 1.0, "at most 1")
        for name in ("bits", "compute_s", "bits_fixed", "before_s"):
            if name in given:
                require_between(name, columns[name], 0.0, FINITE, "finite and not negative")
        for name in ("rate_bps", "weight", "snr"):
            if name in given:
                require_positive(name, columns[name])
        require(
            "slack_s", self.slack_s, self.slack_s > -np.inf, "a number (inf stands for no deadline)"
        )
        require_between("rho_max", self.rho_max, 0.0, 1.0, "between 0 and 1")
        require_between("rho_min", self.rho_min, 0.0, self.rho_max, "between 0 and rho_max")
        if levels is not None:
            table = level_table(levels, self.rho_min, self.rho_max)
            highest = read_only(np.nanmax(table, axis=1))
            columns.update(levels=table, rho_min=read_only(table[:, 0]), rho_max=highest)

    @property
    def num_devices(self) -> int:
        """K."""
        return len(self.bits)

    @cached_property
    def feasible(self) -> Mask:
        """Which devices have any time left, A > 0: bool [K]."""
        served: Mask = self.slack_s > 0
        return served

    @cached_property
    def needs_no_band(self) -> Mask:
        """Devices that send nothing, pruned or not: bool [K]."""
        silent: Mask = (self.bits == 0) & (self.bits_fixed == 0)
        return silent

    @cached_property
    def all_active(self) -> bool:
        """Whether every device has time left and something to send."""
        return bool(self.slack_s.min() > 0 and self.bits.min() > 0)

    @cached_property
    def gain(self) -> Array:
        """w (A q + f G) [K], numerator of the marginal gain; not below 0."""
        time_s = self.slack_s if self.all_active else np.maximum(self.slack_s, 0.0)
        gain: Array = time_s * self.bits
        gain += self.bits_fixed * self.compute_s
        gain *= self.weight
        return read_only(gain)

    def refuse_levels(self, method: str) -> None:
        """Raise ValueError where rho is to be one of given levels: that is not convex."""
        if self.levels is not None:
            raise ValueError(
                f"{method} chooses any rho within its bounds; for levels use the method levels, "
                "or leave them away."
            )

    def rho_at(self, share: ArrayLike) -> Array:
        """Least pruning [K] that meets the deadline with these shares: Liu, eqs. (47), (58).

        Rounded up to the next multiple of 2^-52, so that a device with hardly any band is not
        late by rounding: one unit in the last place of rho is then worth many of its seconds.
        With `levels`, up to the next of them. rho_max where even that is late.

        Args:
            share: b, fraction of the band, [K] or [..., K].

        Returns:
            rho in [rho_min, rho_max], same shape.
        """
        share = np.asarray(share, dtype=float)
        few, enough = self._ends
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rate_bps = self.rate_at(share)
            # the rate of those who need no band cancels out
            np.maximum(rate_bps, TINY, out=rate_bps)
            busy = rate_bps * self.compute_s
            busy += self.bits
            rho = np.multiply(rate_bps, self.slack_s, out=rate_bps)
            rho -= self.bits_fixed
            rho /= busy  # the kept share, rounded down
            rho *= RHO_STEPS
            np.floor(rho, out=rho)
            rho *= 1.0 / RHO_STEPS
        np.subtract(1.0, rho, out=rho)
        np.maximum(rho, self.rho_min, out=rho)
        np.minimum(rho, self.rho_max, out=rho)
        np.putmask(rho, share <= few, self.rho_max)
        np.putmask(rho, share >= enough, self.rho_min)
        return rho if self.levels is None else self._next_level(rho, self.levels)

    def _next_level(self, rho: Array, levels: Array) -> Array:
        """The least level that is not below rho [K]; the largest where there is none."""
        fits = levels >= rho[..., None] - 1.0 / RHO_STEPS
        above = np.where(fits, levels, np.inf).min(axis=-1)
        return np.where(np.isfinite(above), above, self.rho_max)

    @cached_property
    def _met(self) -> tuple[Array, Array, Mask | None]:
        """Shares [K] with which rho_max and rho_min just meet the deadline.

        Where rounding could not tell them apart both are the same; the third [K] says for whom.
        """
        few, enough = self.share_at(np.array((self.rho_max, self.rho_min)))
        same = enough <= few * (1.0 + SAME_SHARE)
        if not same.any():
            return read_only(few), read_only(enough), None
        return read_only(few), read_only(np.where(same, few, enough)), same

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Shares [K] up to which rho is rho_max, and from which it is rho_min."""
        few, enough, same = self._met
        if same is not None:  # rounding must not decide rho
            enough = np.where(same, enough * (1.0 - FEASIBILITY_TOLERANCE), enough)
        if self.all_active:
            return few, enough
        few = np.where(self.needs_no_band, -1.0, few)
        return np.where(self.feasible, few, np.inf), np.where(self.feasible, enough, np.inf)

    def share_bounds(self, most: float = 1.0) -> tuple[Array, Array]:
        """Shares [K] between which rho(b) falls from rho_max to rho_min.

        Both are zero for devices with A <= 0. The lower one is above 1 where the whole band is
        not enough; the upper one is never above `most`.
        """
        few, enough, _ = self._met
        cap = np.minimum(enough, most)
        if self.all_active:
            return few, cap
        idle = self.needs_no_band | ~self.feasible
        return np.where(self.feasible, few, 0.0), np.where(idle, 0.0, cap)

    @property
    def served_weight(self) -> Array:
        """w [K] of the devices that are served, 0 of those left out."""
        return self.weight if self.all_active else np.where(self.feasible, self.weight, 0.0)

    @property
    def mean_weight(self) -> float:
        """What pruning an average served device altogether adds to the objective."""
        served = self.num_devices if self.all_active else int(self.feasible.sum())
        return float(self.served_weight.sum()) / max(served, 1)

    def objective(self, rho: Array) -> float:
        """Sum of w rho over the devices that are served."""
        return float((self.served_weight * rho).sum())

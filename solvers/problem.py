"""The pruning problem of one round: its numbers, its bounds, and the least pruning that is in time.

Symbols of Liu et al.: q bit, G s, A s, r bit/s, w weight, b share, rho pruned share. Beside the paper this problem
knows bounds on rho and f, bits that travel whatever is pruned (a mask's bitmap):

    (1 - rho) (G + q / (b r)) + f / (b r) <= A        the deadline, eqs. (28), (46)
    rho(b) = 1 - (A b r - f) / (b r G + q)             the least pruning that meets it, eq. (47)

b r is the rate R(b) of noise of a fixed power, Liu (9); with `snr` noise is a density and R(b) is concave (`shannon`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.energy_terms import EnergyTerms
from solvers.physics import Array, Physics
from solvers.problem_checks import broadcast, level_table, read_only, validate
from solvers.shannon import TINY

FULL = 1.0 - 2e-15  # shares that add up to this fill the band: the rest is the rounding of the sum
ALLOWED = 1e-9  # the one tolerance of feasibility: a bound exceeded by no more, relative to it, counts as kept
SAME = 1e-12  # relative difference of shares that counts as none
GRID = 2.0**52  # rho is rounded up to a multiple of 1 / GRID, the spacing of doubles just above one


@dataclass(frozen=True, eq=False)
class PruningProblem(Physics):
    """Minimise sum_k w_k rho_k within the band and the deadline: Liu, eqs. (47), (53), with the bounds (54) omits.

    Every field is an array [K] or a number for all devices; at least one field decides K.

    Args:
        bits: upload of the unpruned global part q, bit, >= 0.      compute_s: its computing time G, s, >= 0.
        slack_s: time left after all unprunable work A, s; A <= 0 marks a device that cannot take part,
            inf (no deadline) is not understood by every method.
        rate_bps: rate over the whole band r, bit/s, > 0.           weight: w of the objective, > 0; None is 1.
        rho_min, rho_max: bounds of the pruned share.               bits_fixed: f, bit, >= 0.
        snr: p h / (N0 B) over the whole band; with it noise is a density and collected over the share only. None:
            noise of a fixed power, the rate is linear in the share.
        levels: the allowed values of rho, [L] for all or [K, L], padded with nan, of which those between the bounds
            count (the bounds then move to the outermost of them); None: every value between the bounds.
        before_s: time of the work before that of these fields, s: what `latency` adds to it where no deadline says so.
            None: T_th - A, with one T_th for all.
        energy: what the method `energy` needs to know (`energy.EnergyTerms`), kept as given.
    Raises:
        ValueError: names the field, the device, what was given and what is allowed.
    """

    bits: Array
    compute_s: Array
    slack_s: Array
    rate_bps: Array
    weight: Array | None = None
    rho_min: Array | float = 0.0
    rho_max: Array | float = 1.0
    bits_fixed: Array | float = 0.0
    snr: Array | float | None = None
    levels: Array | None = None
    energy: EnergyTerms | None = None
    before_s: Array | float | None = None

    def __post_init__(self):
        given = {name: getattr(self, name) for name in FIELDS}
        given["weight"] = 1.0 if self.weight is None else self.weight
        given |= {name: getattr(self, name) for name in OPTIONAL if getattr(self, name) is not None}
        for name, values in broadcast(given).items():
            object.__setattr__(self, name, values)
        validate(self)
        if self.levels is not None:
            table = level_table(self.levels, self.rho_min, self.rho_max)
            for name, values in (
                ("levels", table),
                ("rho_min", table[:, 0]),
                ("rho_max", np.nanmax(table, axis=1)),
            ):
                object.__setattr__(self, name, read_only(values))

    @property
    def num_devices(self) -> int:
        """K."""
        return len(self.bits)

    @cached_property
    def feasible(self) -> Array:
        """Which devices have any time left, A > 0: bool [K]."""
        return self.slack_s > 0

    @cached_property
    def needs_no_band(self) -> Array:
        """Devices that send nothing, pruned or not: bool [K]."""
        return (self.bits == 0) & (self.bits_fixed == 0)

    @cached_property
    def usual(self) -> bool:
        """Whether every device has time left and something to send."""
        return bool(self.slack_s.min() > 0 and self.bits.min() > 0)

    @cached_property
    def gain(self) -> Array:
        """w (A q + f G) [K], numerator of the marginal (`marginal`); no less than 0."""
        gain = (self.slack_s if self.usual else np.maximum(self.slack_s, 0.0)) * self.bits
        gain += self.bits_fixed * self.compute_s
        gain *= self.weight
        return read_only(gain)

    def rho_at(self, share: Array) -> Array:
        """Least pruning [K] in [rho_min, rho_max] that meets the deadline with these shares: Liu, eqs. (47), (58).

        Rounded up to the next multiple of 2^-52, so that a device with hardly any band is not late by rounding:
        one ulp of rho is then worth many of its seconds. With `levels`, up to the next of them. rho_max where even
        that is late.
        """
        share = np.asarray(share, dtype=float)
        few, enough = self._ends
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rate_bps = self.rate_at(share)
            np.maximum(
                rate_bps, TINY, out=rate_bps
            )  # of those who need no band the rate cancels out
            busy = rate_bps * self.compute_s
            busy += self.bits
            rho = np.multiply(rate_bps, self.slack_s, out=rate_bps)
            rho -= self.bits_fixed
            rho /= busy  # what is kept
            rho *= GRID
            np.floor(rho, out=rho)
            rho *= 1.0 / GRID
        np.subtract(1.0, rho, out=rho)
        np.maximum(rho, self.rho_min, out=rho)
        np.minimum(rho, self.rho_max, out=rho)
        np.putmask(rho, share <= few, self.rho_max)
        np.putmask(rho, share >= enough, self.rho_min)
        return rho if self.levels is None else self._next_level(rho)

    @cached_property
    def _met(self) -> tuple[Array, Array, Array | None]:
        """Shares [K] with which rho_max and rho_min just meet the deadline; one where rounding could not tell them, and
        for whom that is so, if for any."""
        few, enough = self.share_at(np.array((self.rho_max, self.rho_min)))
        same = enough <= few * (1.0 + SAME)
        if not same.any():
            return read_only(few), read_only(enough), None
        return read_only(few), read_only(np.where(same, few, enough)), same

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Shares [K] up to which rho is rho_max, and from which it is rho_min."""
        few, enough, same = self._met
        if same is not None:
            enough = np.where(
                same, enough * (1.0 - ALLOWED), enough
            )  # rounding must not decide rho
        if self.usual:
            return few, enough
        few = np.where(self.needs_no_band, -1.0, few)
        return np.where(self.feasible, few, np.inf), np.where(self.feasible, enough, np.inf)

    def _next_level(self, rho: Array) -> Array:
        """The least level that is not below rho [K]; the largest where there is none."""
        above = np.where(self.levels >= rho[..., None] - 1.0 / GRID, self.levels, np.inf).min(
            axis=-1
        )
        return np.where(np.isfinite(above), above, self.rho_max)

    def share_bounds(self, most: float = 1.0) -> tuple[Array, Array]:
        """Shares [K] between which rho(b) falls from rho_max to rho_min; the upper one is never above `most`.

        Both are zero for devices with A <= 0. The lower one is above 1 where the whole band is not enough.
        """
        few, enough, _ = self._met
        cap = np.minimum(enough, most)
        if self.usual:
            return few, cap
        return np.where(self.feasible, few, 0.0), np.where(
            self.needs_no_band | ~self.feasible, 0.0, cap
        )

    @property
    def served_weight(self) -> Array:
        """w [K] of the devices that are served, 0 of those left out."""
        return self.weight if self.usual else np.where(self.feasible, self.weight, 0.0)

    @property
    def mean_weight(self) -> float:
        """Of those that are served: what pruning an average one altogether adds to the objective."""
        served = self.num_devices if self.usual else int(self.feasible.sum())
        return float(self.served_weight.sum()) / max(served, 1)

    def objective(self, rho: Array) -> float:
        """Sum of w rho over the devices that are served."""
        return float((self.served_weight * rho).sum())


FIELDS = ("bits", "compute_s", "slack_s", "rate_bps", "weight", "rho_min", "rho_max", "bits_fixed")
OPTIONAL = ("snr", "before_s")

"""The pruning problem of one round, its answer, and the physics that both are checked against.

Symbols of Liu et al.: q bit, G s, A s, r bit/s, w weight, b share, rho pruned share. Beside the paper this problem
knows bounds on rho and f, bits that travel whatever is pruned (a mask's bitmap):

    (1 - rho) (G + q / (b r)) + f / (b r) <= A        the deadline, eqs. (28), (46)
    rho(b) = 1 - (A b r - f) / (b r G + q)             the least pruning that meets it, eq. (47)

b r is the rate R(b) of noise of a fixed power, Liu (9); with `snr` noise is a density and R(b) is concave (`shannon`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from solvers.checks import broadcast, level_table, read_only, validate
from solvers.shannon import TINY, rate_factor, share_for_factor, slope_factor

Array = np.ndarray
FULL = 1.0 - 2e-15  # shares that add up to this fill the band: the rest is the rounding of the sum
LATE = 1e-9  # what is late by no more than this share of its time is in time, where no pruning would help
SAME = 1e-12  # relative difference of shares that counts as none
GRID = 2.0**52  # rho is rounded up to a multiple of 1 / GRID, the spacing of doubles just above one


class Infeasible(ValueError):
    """The least shares do not fit into the band.

    devices: indices of those that do not fit.  extra_s: least time, added to every slack, with which all fit, s.
    """

    def __init__(self, message: str, devices: tuple[int, ...], extra_s: float):
        super().__init__(message)
        self.devices = devices
        self.extra_s = extra_s


class Uncertified(RuntimeError):
    """A solver's answer did not pass its certificate; it must not be used."""


class InvalidAllocation(ValueError):
    """The answer of a user's own allocator breaks a bound."""


@dataclass(frozen=True)
class Certificate:
    """How far an answer is from optimal, evaluated in SI from share and rho (all relative; nan: not claimed).

    residual: the worst of primal, dual and complementarity.     gap: duality gap, see `certify.certify`.
    broken: in words, which bounds are broken.                   claim: in words, which optimality is claimed.
    """

    residual: float
    gap: float
    primal: float
    dual: float
    complementarity: float
    broken: tuple[str, ...] = ()
    claim: str = "feasible"


@dataclass(frozen=True, eq=False)
class Allocation:
    """Band shares b [K] and pruning ratios rho [K].

    multiplier: lambda, the fall of the objective per unit of band.    objective: sum of w rho over those served.
    infeasible: indices of devices without any time left (A <= 0); they get share 0 and rho_max.
    cpu_hz, power_w: CPU frequencies [K], Hz, and transmit powers [K], W, of methods that choose them.
    """

    share: Array
    rho: Array
    multiplier: float
    certificate: Certificate
    infeasible: tuple[int, ...]
    method: str
    objective: float
    cpu_hz: Array | None = None
    power_w: Array | None = None
    problem: PruningProblem | None = field(default=None, repr=False)

    def explain(self) -> str:
        """What binds for whom, in words; see `solvers.explain`."""
        from solvers.explain import explain

        return explain(self)

    def sensitivity(self, bandwidth_hz: float = float("nan")):
        """What a little more band or time is worth; see `solvers.sensitivity`."""
        from solvers.sensitivity import sensitivity

        return sensitivity(self, bandwidth_hz)


@dataclass(frozen=True, eq=False)
class PruningProblem:
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
    energy: Any = None
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
            for name, values in (("levels", table), ("rho_min", table[:, 0]), ("rho_max", np.nanmax(table, axis=1))):
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
        return bool(self.feasible.all() and self.bits.all())

    def rate_at(self, share: Array) -> Array:
        """Rate R(b) of every device with these shares [K], bit/s: Liu (9), or b log2(1 + snr / b) under a density."""
        if self.snr is None:
            return self.rate_bps * share
        return self.rate_bps * rate_factor(np.asarray(share, dtype=float), self.snr)

    def slope_at(self, share: Array) -> Array:
        """dR/db [K], bit/s per unit of share."""
        if self.snr is None:
            return self.rate_bps
        return self.rate_bps * slope_factor(np.asarray(share, dtype=float), self.snr)

    def share_for_rate(self, rate_bps: Array) -> Array:
        """The share [K] with which R(b) is this rate [K], bit/s: above 1 for more than the whole band gives,
        inf for more than any band would give (under a density of noise)."""
        factor = rate_bps / self.rate_bps
        return factor if self.snr is None else share_for_factor(factor, self.snr)

    @cached_property
    def gain(self) -> Array:
        """w (A q + f G) [K], numerator of the marginal (`marginal`); no less than 0."""
        return self.weight * (np.maximum(self.slack_s, 0.0) * self.bits + self.bits_fixed * self.compute_s)

    def finish_s(self, share: Array, rho: Array) -> Array:
        """Time used of the slack [K], s: Liu, eqs. (24) + (25), the prunable parts; inf where bits have no band."""
        kept = 1.0 - np.asarray(rho, dtype=float)
        return kept * self.compute_s + self.upload_s(share, kept * self.bits + self.bits_fixed)

    def upload_s(self, share: Array, bits: Array) -> Array:
        """Time that these bits [K] take with these shares [K], s: Liu, eq. (25); inf where bits have no band."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(bits == 0, 0.0, bits / self.rate_at(share))

    def rate_needed(self, rho: Array | float, extra_s: float = 0.0) -> Array:
        """Rate [K] with which pruning rho just meets the deadline put off by extra_s, bit/s; inf where none does."""
        kept = 1.0 - np.asarray(rho, dtype=float)
        bits = kept * self.bits + self.bits_fixed
        left_s = self.slack_s + extra_s - kept * self.compute_s
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(left_s < 0, np.inf, np.fmax(bits / left_s, 0.0))  # nothing in no time is 0 / 0: 0

    def share_at(self, rho: Array | float, extra_s: float = 0.0) -> Array:
        """Share [K] with which pruning rho just meets the deadline put off by extra_s; inf where no share does."""
        return self.share_for_rate(self.rate_needed(rho, extra_s))

    def rho_at(self, share: Array) -> Array:
        """Least pruning [K] in [rho_min, rho_max] that meets the deadline with these shares: Liu, eqs. (47), (58).

        Rounded up to the next multiple of 2^-52, so that a device with hardly any band is not late by rounding:
        one ulp of rho is then worth many of its seconds. With `levels`, up to the next of them. rho_max where even
        that is late.
        """
        share = np.asarray(share, dtype=float)
        few, enough = self._ends
        rate_bps = np.maximum(self.rate_at(share), TINY)  # of those who need no band the rate cancels out
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            kept = (self.slack_s * rate_bps - self.bits_fixed) / (rate_bps * self.compute_s + self.bits)
            rho = 1.0 - np.floor(kept * GRID) * (1.0 / GRID)
        rho = np.minimum(np.maximum(rho, self.rho_min), self.rho_max)
        rho = np.where(share >= enough, self.rho_min, np.where(share <= few, self.rho_max, rho))
        return rho if self.levels is None else self._next_level(rho)

    @cached_property
    def _met(self) -> tuple[Array, Array]:
        """Shares [K] with which rho_max and rho_min just meet the deadline; one where rounding could not tell them."""
        few, enough = self.share_at(np.array((self.rho_max, self.rho_min)))
        same = enough <= few * (1.0 + SAME)
        return read_only(few), read_only(np.where(same, few, enough) if same.any() else enough)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Shares [K] up to which rho is rho_max, and from which it is rho_min."""
        few, enough = self._met
        same = enough == few
        if same.any():
            enough = np.where(same, enough * (1.0 - LATE), enough)  # rounding must not decide rho
        if self.usual:
            return few, enough
        few = np.where(self.needs_no_band, -1.0, few)
        return np.where(self.feasible, few, np.inf), np.where(self.feasible, enough, np.inf)

    def _next_level(self, rho: Array) -> Array:
        """The least level that is not below rho [K]; the largest where there is none."""
        above = np.where(self.levels >= rho[..., None] - 1.0 / GRID, self.levels, np.inf).min(axis=-1)
        return np.where(np.isfinite(above), above, self.rho_max)

    def share_bounds(self, most: float = 1.0) -> tuple[Array, Array]:
        """Shares [K] between which rho(b) falls from rho_max to rho_min; the upper one is never above `most`.

        Both are zero for devices with A <= 0. The lower one is above 1 where the whole band is not enough.
        """
        few, enough = self._met
        cap = np.minimum(enough, most)
        if self.usual:
            return few, cap
        return np.where(self.feasible, few, 0.0), np.where(self.needs_no_band | ~self.feasible, 0.0, cap)

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

"""The pruning problem of one round, its answer, and the physics that both are checked against.

Symbols of Liu et al.: q bit, G s, A s, r bit/s, w weight, b share, rho pruned share. Beside the paper this problem
knows bounds on rho and f, bits that travel whatever is pruned (a mask's bitmap):

    (1 - rho) (G + q / (b r)) + f / (b r) <= A        the deadline, eqs. (28), (46)
    rho(b) = 1 - (A b r - f) / (b r G + q)             the least pruning that meets it, eq. (47)
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

Array = np.ndarray
FULL = 1.0 - 2e-15  # shares that add up to this fill the band: the rest is the rounding of the sum
LATE = 1e-9  # fixed bits that are late by no more than this share of their time are in time
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
    broken: in words, which bounds are broken.
    """

    residual: float
    gap: float
    primal: float
    dual: float
    complementarity: float
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Allocation:
    """Band shares b [K] and pruning ratios rho [K].

    multiplier: lambda, the fall of the objective per unit of band.    objective: sum of w rho over those served.
    infeasible: indices of devices without any time left (A <= 0); they get share 0 and rho_max.
    """

    share: Array
    rho: Array
    multiplier: float
    certificate: Certificate
    infeasible: tuple[int, ...]
    method: str
    objective: float


@dataclass(frozen=True, eq=False)
class PruningProblem:
    """Minimise sum_k w_k rho_k within the band and the deadline: Liu, eqs. (47), (53), with the bounds (54) omits.

    Every field is an array [K] or a number for all devices; at least one field decides K.

    Args:
        bits: upload of the unpruned global part q, bit, >= 0.      compute_s: its computing time G, s, >= 0.
        slack_s: time left after all unprunable work A, s; A <= 0 marks a device that cannot take part,
            inf (no deadline) is understood by the method `equal` alone.
        rate_bps: rate over the whole band r, bit/s, > 0.           weight: w of the objective, > 0; None is 1.
        rho_min, rho_max: bounds of the pruned share.               bits_fixed: f, bit, >= 0.
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

    def __post_init__(self):
        if self.weight is None:
            object.__setattr__(self, "weight", 1.0)
        names = [field.name for field in fields(self)]
        for name, values in zip(names, _broadcast(names, [getattr(self, n) for n in names]), strict=True):
            object.__setattr__(self, name, values)
        _validate(self)

    @property
    def num_devices(self) -> int:
        """K."""
        return len(self.bits)

    @property
    def feasible(self) -> Array:
        """Which devices have any time left, A > 0: bool [K]."""
        return self.slack_s > 0

    def finish_s(self, share: Array, rho: Array) -> Array:
        """Time used of the slack [K], s: Liu, eqs. (24) + (25), the prunable parts; inf where bits have no band."""
        kept = 1.0 - np.asarray(rho, dtype=float)
        bits = kept * self.bits + self.bits_fixed
        with np.errstate(divide="ignore", invalid="ignore"):
            upload_s = np.where(bits == 0, 0.0, bits / (share * self.rate_bps))
        return kept * self.compute_s + upload_s

    def share_at(self, rho: Array | float) -> Array:
        """Share of the band [K] with which pruning rho just meets the deadline; inf where no share does."""
        kept = 1.0 - np.asarray(rho, dtype=float)
        band_s = (kept * self.bits + self.bits_fixed) / self.rate_bps  # seconds of the whole band
        left_s = self.slack_s - kept * self.compute_s
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(left_s > 0, band_s / left_s, np.inf)
        return np.where((band_s == 0) & (left_s >= 0), 0.0, share)

    def rho_at(self, share: Array) -> Array:
        """Least pruning [K] in [rho_min, rho_max] that meets the deadline with these shares: Liu, eqs. (47), (58).

        Rounded up to the next multiple of 2^-52, so that a device with hardly any band is not late by rounding:
        one ulp of rho is then worth many of its seconds. rho_max where even that is late.
        """
        share = np.asarray(share, dtype=float)
        rate_bps = share * self.rate_bps
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            room = self.slack_s * rate_bps - self.bits_fixed
            per_kept = rate_bps * self.compute_s + self.bits
            kept = np.where(per_kept > 0, room / per_kept, np.where(room >= -LATE * self.bits_fixed, np.inf, -np.inf))
            kept = np.where(self.needs_no_band, self.slack_s / self.compute_s, kept)
        kept = np.where(self.slack_s == np.inf, np.inf, kept)
        rho = np.clip(1.0 - np.floor(np.clip(kept, 0.0, 1.0) * GRID) / GRID, self.rho_min, self.rho_max)
        on_band = ~self.needs_no_band
        rho = np.where(on_band & (per_kept > 0) & (share <= self.share_at(self.rho_max)), self.rho_max, rho)
        rho = np.where(on_band & (share >= self.share_at(self.rho_min)), self.rho_min, rho)
        return np.where(self.feasible, rho, self.rho_max)

    @property
    def needs_no_band(self) -> Array:
        """Devices that send nothing, pruned or not: bool [K]."""
        return (self.bits == 0) & (self.bits_fixed == 0)

    def share_bounds(self) -> tuple[Array, Array]:
        """Shares [K] between which rho(b) falls from rho_max to rho_min; the upper one never above the whole band.

        Both are zero for devices with A <= 0. The lower one is above 1 where the whole band is not enough.
        """
        low = np.where(self.feasible, self.share_at(self.rho_max), 0.0)
        cap = np.minimum(self.share_at(self.rho_min), 1.0)
        return low, np.where(self.needs_no_band | ~self.feasible, 0.0, cap)

    def objective(self, rho: Array) -> float:
        """Sum of w rho over the devices that are served."""
        return float(np.sum(self.weight * rho, where=self.feasible))


def _broadcast(names: list[str], values: list) -> list[Array]:
    arrays = []
    for name, value in zip(names, values, strict=True):
        try:
            arrays.append(np.array(value, dtype=float))
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} is {value!r:.60}; give a number or an array of numbers, one per device."
            ) from None
    try:
        shape = np.broadcast_shapes((1,), *(a.shape for a in arrays))
    except ValueError:
        shape = ()
    if len(shape) != 1 or shape[0] == 0:
        given = ", ".join(f"{name} {a.shape}" for name, a in zip(names, arrays, strict=True) if a.ndim)
        raise ValueError(f"The fields have shapes {given}; give every field one number or one value per device.")
    arrays = [np.broadcast_to(a, shape) for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    return arrays


def _validate(p: PruningProblem) -> None:
    inf = np.inf
    _require("bits", p.bits, (p.bits >= 0) & (p.bits < inf), "finite and not negative")
    _require("compute_s", p.compute_s, (p.compute_s >= 0) & (p.compute_s < inf), "finite and not negative")
    _require("slack_s", p.slack_s, p.slack_s > -inf, "a number (inf stands for no deadline)")
    _require("rate_bps", p.rate_bps, (p.rate_bps > 0) & (p.rate_bps < inf), "finite and positive")
    _require("weight", p.weight, (p.weight > 0) & (p.weight < inf), "finite and positive")
    _require("rho_max", p.rho_max, (p.rho_max >= 0) & (p.rho_max <= 1), "between 0 and 1")
    _require("rho_min", p.rho_min, (p.rho_min >= 0) & (p.rho_min <= p.rho_max), "between 0 and rho_max")
    _require("bits_fixed", p.bits_fixed, (p.bits_fixed >= 0) & (p.bits_fixed < inf), "finite and not negative")


def _require(name: str, values: Array, good: Array, allowed: str) -> None:
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(f"{name} of device {k} is {values[k]:g}; it must be {allowed}.")

"""What the energy of a round depends on, and its physics in SI: times and joules of given shares, clocks, powers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from solvers.min_energy.energy_curve import Radio
from solvers.problem import Array, PruningProblem
from solvers.problem_checks import FINITE, between, broadcast, require

AT_LIMIT = 1e-7  # a power this close to its limit is held by it


@dataclass(frozen=True, eq=False)
class EnergyTerms:
    """What energy depends on beside a `PruningProblem`; each a number or one value per device [K].

    Args:
        cycles: of all the round's work at rho_min, the unprunable included, C.     kappa: J s^2 (kappa f^2 a cycle).
        f_min_hz, f_max_hz: clocks to choose from; slack_s and compute_s of the problem are those at f_max.
        p_max_w: most transmit power, with which rate_bps of the problem is reached.
        gain: signal-to-noise ratio over the whole band per watt, 1/W: h / sigma^2, or h / (N0 B).
    Raises:
        ValueError: names the field, the device, what was given and what is allowed.
    """

    cycles: Array | float
    kappa: Array | float
    f_min_hz: Array | float
    f_max_hz: Array | float
    p_max_w: Array | float
    gain: Array | float

    def __post_init__(self):
        for name, values in broadcast({name: getattr(self, name) for name in NAMES}).items():
            object.__setattr__(self, name, values)
        for name in ("cycles", "kappa"):
            between(name, getattr(self, name), 0.0, FINITE, "finite and not negative")
        for name in ("f_max_hz", "p_max_w", "gain"):
            between(name, getattr(self, name), 0.0, FINITE, "finite and positive", open_=True)
        between("f_min_hz", self.f_min_hz, 0.0, self.f_max_hz, "between 0 and f_max_hz")

    def spread(self, count: int) -> EnergyTerms:
        """The same with arrays [K] of K devices."""
        if len(self.cycles) not in (1, count):
            raise ValueError(
                f"energy has {len(self.cycles)} devices and the problem {count}; give one value for each."
            )
        return EnergyTerms(
            **{name: np.broadcast_to(getattr(self, name), (count,)) for name in NAMES}
        )


NAMES = [field.name for field in fields(EnergyTerms)]


@dataclass(frozen=True, eq=False)
class Task:
    """A problem and its energy terms, at rho_min: who sends how much, and until when. Arrays [K]."""

    problem: PruningProblem
    terms: EnergyTerms

    @classmethod
    def of(cls, problem: PruningProblem) -> Task:
        """Raises ValueError: no energy terms, no deadline, terms of another signal-to-noise ratio."""
        if not isinstance(problem.energy, EnergyTerms):
            raise ValueError(
                "energy needs clocks, powers and cycles; give the problem energy=EnergyTerms(...)."
            )
        between(
            "slack_s",
            problem.slack_s,
            -np.inf,
            FINITE,
            "finite: without a deadline there is no least energy",
        )
        terms = problem.energy.spread(problem.num_devices)
        if problem.snr is not None:
            same = np.abs(terms.p_max_w * terms.gain - problem.snr) <= 1e-6 * problem.snr
            require("snr", problem.snr, same, "p_max_w times gain of its energy terms")
        return cls(problem, terms)

    @cached_property
    def bits(self) -> Array:
        return (1.0 - self.problem.rho_min) * self.problem.bits + self.problem.bits_fixed

    @cached_property
    def sends(self) -> Array:
        return self.problem.feasible & (self.bits > 0)

    @cached_property
    def time_s(self) -> Array:
        """Time for all computing and the upload: what is left for it at full clock, and the computing at full clock."""
        p = self.problem
        return p.slack_s - (1.0 - p.rho_min) * p.compute_s + self.tau_min

    @cached_property
    def tau_min(self) -> Array:
        """Computing time at f_max, s."""
        return self.terms.cycles / self.terms.f_max_hz

    @cached_property
    def tau_max(self) -> Array:
        """Longest computing time of use: at f_min, or all the time, s."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slowest = np.where(self.terms.cycles > 0, self.terms.cycles / self.terms.f_min_hz, 0.0)
        return np.minimum(slowest, np.maximum(self.time_s, self.tau_min))

    @cached_property
    def snr(self) -> Array:
        return self.terms.p_max_w * self.terms.gain

    @cached_property
    def radio(self) -> Radio:
        """Those who send [S], as the curve sees them."""
        columns = {
            "s": np.log1p(self.snr) * (self.bits / self.problem.rate_bps),
            "gain": self.terms.gain,
            "snr": self.snr,
            "work": self.terms.kappa * self.terms.cycles**3,
            "time_s": self.time_s,
            "tau_min": self.tau_min,
            "tau_max": self.tau_max,
        }
        density = self.problem.snr is not None
        return Radio(
            **{name: values[self.sends] for name, values in columns.items()}, density=density
        )

    def computing_s(self, cpu_hz: Array) -> Array:
        """C / f, s."""
        return self.terms.cycles / cpu_hz

    def air_s(self, share: Array, power_w: Array) -> Array:
        """n / R of those who send, s: R = b B log2(1 + p g), or under a density b B log2(1 + p g / b)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            level = self.terms.gain * power_w / (1.0 if self.problem.snr is None else share)
            rate_bps = self.problem.rate_bps * share * (np.log1p(level) / np.log1p(self.snr))
            return np.where(self.sends, np.where(rate_bps > 0, self.bits / rate_bps, np.inf), 0.0)

    def energy_j(self, cpu_hz: Array, power_w: Array, air_s: Array) -> Array:
        """kappa C f^2 + p t of those who are served, J."""
        with np.errstate(invalid="ignore"):  # no power and no end of sending
            joules = self.terms.kappa * self.terms.cycles * cpu_hz**2 + power_w * air_s
        return np.where(self.problem.feasible, joules, 0.0)

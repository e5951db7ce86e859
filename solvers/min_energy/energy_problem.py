"""The energy problem of a round in SI units: times and joules of given shares, clocks, powers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.energy_terms import EnergyTerms
from solvers.min_energy.energy_curve import Radio
from solvers.problem import Array, PruningProblem
from solvers.problem_checks import FINITE, between, require

AT_LIMIT = 1e-7  # a power this close to its limit is held by it


@dataclass(frozen=True, eq=False)
class EnergyProblem:
    """A problem and its energy terms, at rho_min: who sends how much, and until when. Arrays [K]."""

    problem: PruningProblem
    terms: EnergyTerms

    @classmethod
    def of(cls, problem: PruningProblem) -> EnergyProblem:
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

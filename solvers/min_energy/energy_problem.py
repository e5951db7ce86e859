"""The energy problem of a round in SI units: times and joules of shares, clocks and powers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.arrays import FINITE, Array, Mask, require, require_between
from solvers.energy_terms import EnergyTerms
from solvers.min_energy.energy_curve import Radio
from solvers.problem import PruningProblem


@dataclass(frozen=True, eq=False)
class EnergyProblem:
    """A problem and its energy terms at rho_min: who sends how much, and until when.

    Attributes:
        problem: K devices.
        terms: their clocks and powers, [K].
    """

    problem: PruningProblem
    terms: EnergyTerms

    @classmethod
    def of(cls, problem: PruningProblem) -> EnergyProblem:
        """The energy problem of a pruning problem that has energy terms.

        Raises:
            ValueError: no energy terms, no deadline, terms of another signal-to-noise ratio.
        """
        if not isinstance(problem.energy, EnergyTerms):
            raise ValueError(
                "energy needs clocks, powers and cycles; give the problem energy=EnergyTerms(...)."
            )
        allowed = "finite: without a deadline there is no least energy"
        require_between("slack_s", problem.slack_s, -np.inf, FINITE, allowed)
        terms = problem.energy.spread(problem.num_devices)
        if problem.snr is not None:
            same = np.abs(terms.p_max_w * terms.gain - problem.snr) <= 1e-6 * problem.snr
            require("snr", problem.snr, same, "p_max_w times gain of its energy terms")
        return cls(problem, terms)

    @cached_property
    def bits(self) -> Array:
        """Bits to send [K]."""
        kept: Array = 1.0 - self.problem.rho_min
        return kept * self.problem.bits + self.problem.bits_fixed

    @cached_property
    def sends(self) -> Mask:
        """Which devices are served and have bits to send: bool [K]."""
        return self.problem.feasible & (self.bits > 0)

    @cached_property
    def time_s(self) -> Array:
        """Time [K] for all computing and the upload, s."""
        p = self.problem
        spare_s: Array = p.slack_s - (1.0 - p.rho_min) * p.compute_s
        return spare_s + self.tau_min

    @cached_property
    def tau_min(self) -> Array:
        """Computing time [K] at f_max, s."""
        return self.terms.cycles / self.terms.f_max_hz

    @cached_property
    def tau_max(self) -> Array:
        """Longest computing time [K] of use: at f_min, or all the time, s."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slowest = np.where(self.terms.cycles > 0, self.terms.cycles / self.terms.f_min_hz, 0.0)
        return np.minimum(slowest, np.maximum(self.time_s, self.tau_min))

    @cached_property
    def snr(self) -> Array:
        """Signal-to-noise ratio over the whole band at full power [K]."""
        return self.terms.p_max_w * self.terms.gain

    @cached_property
    def radio(self) -> Radio:
        """Those who send [S]."""
        on = self.sends
        return Radio(
            s=(np.log1p(self.snr) * (self.bits / self.problem.rate_bps))[on],
            gain=(self.terms.gain / self.terms.air_share)[on],
            snr=self.snr[on],
            work=(self.terms.kappa * self.terms.cycles**3)[on],
            time_s=self.time_s[on],
            tau_min=self.tau_min[on],
            tau_max=self.tau_max[on],
            density=self.problem.snr is not None,
        )

    def sent_w(self, mean_w: Array) -> Array:
        """Transmit powers of those who send [S] with these mean powers [S], W."""
        return mean_w / self.terms.air_share[self.sends]

    def mean_w(self, power_w: Array) -> Array:
        """Transmit powers [K] as means over the time of an upload [K], W."""
        return self.terms.air_share * power_w

    def computing_s(self, cpu_hz: Array) -> Array:
        """C / f [K], s."""
        return self.terms.cycles / cpu_hz

    def air_s(self, share: Array, power_w: Array) -> Array:
        """Time [K] to send the bits with these shares and powers, s; 0 for who sends nothing.

        The rate is b B log2(1 + p g), or b B log2(1 + p g / b) where noise is a density.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            level = self.terms.gain * power_w / (1.0 if self.problem.snr is None else share)
            rate_bps = self.problem.rate_bps * share * (np.log1p(level) / np.log1p(self.snr))
            return np.where(self.sends, np.where(rate_bps > 0, self.bits / rate_bps, np.inf), 0.0)

    def energy_j(self, cpu_hz: Array, power_w: Array, air_s: Array) -> Array:
        """kappa C f^2 + a p t [K] of those who are served, J; a: share of t on the air."""
        with np.errstate(invalid="ignore"):  # no power, and sending that never ends
            sending_j = self.mean_w(power_w) * air_s
            joules = self.terms.kappa * self.terms.cycles * cpu_hz**2 + sending_j
        return np.where(self.problem.feasible, joules, 0.0)

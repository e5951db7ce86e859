"""Joules of a device as a function of band and air time, and its best response to a price.

With the spectral efficiency x = s / (b t) in nats (s: bits over the band of one nat per second),
the least power that sends the bits in t seconds on the share b costs

    fixed power   E = t (e^x - 1) / g      dE/dt = -psi / g      dE/db = -t x e^x / (b g)
    density       E = b t (e^x - 1) / g    dE/dt = -b psi / g    dE/db = -t psi / g

with psi = e^x (x - 1) + 1; both are jointly convex in (b, t), as their series in 1 / (b t) is. The
rest of the time A is left for computing, W / tau^2 joules in tau = A - t seconds, W = kappa C^3. On
the best responses of a device to a price (band costs lambda joules), x and t rise together with
lambda: the curve has one parameter u. It leaves the inner stationarity dE/dt + 2 W / tau^3 = 0
only where the frequency or the power is at its limit.

Powers are means over the time t. A device that is on the air for the share a of it sends p / a, so
that its gain per watt is g / a, and its joules are again the mean power times t.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from solvers.arrays import Array, Counts
from solvers.rates import kappa, share_for_factor, snr_log

CLOSE = 1e-14  # relative, of a price
TURNS = 200  # of which halving alone would need about 160


def psi(x: Array) -> Array:
    """e^x (x - 1) + 1 without cancellation."""
    return np.exp(x) * kappa(x)


@dataclass(frozen=True)
class Radio:
    """Devices that send.

    Attributes:
        s: bits in nats over the band [S], s.
        gain: signal-to-noise ratio over the whole band per watt of mean power [S], 1/W.
        snr: the same at the largest power [S].
        work: kappa C^3 [S], J s^2.
        time_s: A [S], for computing and sending, s.
        tau_min: C / f_max [S], s.
        tau_max: C / f_min [S], s.
        density: whether noise is a density.
    """

    s: Array
    gain: Array
    snr: Array
    work: Array
    time_s: Array
    tau_min: Array
    tau_max: Array
    density: bool

    @cached_property
    def p_max(self) -> Array:
        """Largest mean power [S], W."""
        return self.snr / self.gain

    @cached_property
    def x_max(self) -> Array:
        """Nats per second and hertz at full power in the whole band [S]."""
        return np.log1p(self.snr)

    @cached_property
    def longest_s(self) -> Array:
        """Air time with the processor at f_max [S]."""
        return self.time_s - self.tau_min

    def power(self, share: Array, air_s: Array) -> Array:
        """Least mean power that sends the bits in this time on this share [S], W."""
        level = np.expm1(self.s / (share * air_s)) / self.gain
        return share * level if self.density else level

    def full_power_s(self, share: Array) -> Array:
        """Air time at full power with these shares [S], s."""
        return self.s / (share * (snr_log(share, self.snr) if self.density else self.x_max))

    def slopes(self, share: Array, air_s: Array) -> tuple[Array, Array]:
        """dE/db and dE/dt of the energy of sending [S]."""
        x = self.s / (share * air_s)
        if self.density:
            return -air_s * psi(x) / self.gain, -share * psi(x) / self.gain
        return -air_s * x * np.exp(x) / share / self.gain, -psi(x) / self.gain

    def saved(self, air_s: Array) -> Array:
        """2 W / tau^3 [S]: what one second more for computing saves, W."""
        tau = np.maximum(self.time_s - air_s, self.tau_min)
        saved = np.zeros_like(tau)
        np.divide(2.0 * self.work, tau**3, out=saved, where=self.work > 0)
        return saved

    # -- the curve of best responses

    def ends(self) -> tuple[Array, Array]:
        """Parameters u [S] of more than the whole band, and of the least share of any price."""
        alone = self.s / self.longest_s  # nats of a device with the whole band to itself
        if not self.density:
            return 0.5 * alone, self.x_max + np.log(self.longest_s / self._full_air_s)
        return 0.5 * alone, alone / share_for_factor(alone / self.x_max, self.snr)

    @property
    def knee(self) -> Array:
        """Parameters [S] beyond which the power is full, where that is known; else no bound."""
        return np.full_like(self.s, np.inf) if self.density else self.x_max

    @cached_property
    def _full_air_s(self) -> Array:
        """Air time where the power has just become full, under noise of a fixed power [S], s."""
        return np.minimum(np.maximum(self.at(self.x_max)[1], self._least_air_s), self.longest_s)

    @cached_property
    def _least_air_s(self) -> Array:
        """Where full power would take twice the whole band: no price of use leads to less."""
        return 0.5 * self.s / self.x_max

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """Share, air time (s) and log of the price [S] of the parameter u [S].

        The price is increasing in u.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._at_density(u) if self.density else self._at_power(u)

    def _at_power(self, u: Array) -> tuple[Array, Array, Array]:
        """Up to x_max x is u, and the power rises; beyond it t rises by e^(u - x_max)."""
        x, full = np.minimum(u, self.x_max), u > self.x_max
        tau = self._computing(np.cbrt(2.0 * self.work * self.gain / psi(x)))
        air_s = np.maximum(self.time_s - tau, 0.0)
        air_s = np.where(full, np.maximum(air_s, self._least_air_s) * np.exp(u - x), air_s)
        air_s = np.minimum(air_s, self.longest_s)
        worth = np.maximum(
            np.where(full, self.saved(air_s) + self.p_max, 0.0), x * np.exp(x) / self.gain
        )
        price = worth * x * air_s**2 / self.s
        return self.s / (x * air_s), air_s, np.log(price)

    def _at_density(self, u: Array) -> tuple[Array, Array, Array]:
        """x is u. Inner stationarity is a cubic, tau^3 + P tau = P A, unless full power decides.

        At full power t = s (e^x - 1) / (c x).
        """
        x = u
        p = 2.0 * self.work * self.gain * x / (self.s * psi(x))
        scale = np.sqrt(p / 3.0)
        tau = 2.0 * scale * np.sinh(np.arcsinh(1.5 * self.time_s / scale) / 3.0)
        tau = self._computing(np.where(p > 0, tau, 0.0))
        free_s = np.maximum(self.time_s - tau, 0.0)
        full_s = np.minimum(self.s * np.expm1(x) / (self.snr * x), self.longest_s)
        full = full_s > free_s
        steep = self.s * psi(x) * (2.0 * np.sinh(x / 2.0)) ** 2 / (self.snr * x) ** 2
        air_s = np.where(full, full_s, free_s)
        price = np.where(
            full, (self.saved(full_s) + self.p_max) * steep, free_s * psi(x) / self.gain
        )
        return self.s / (x * air_s), air_s, np.log(price)

    def _computing(self, tau: Array) -> Array:
        """The nearest computing time that the clock allows [S], s."""
        return np.minimum(np.maximum(tau, self.tau_min), self.tau_max)

    def subset(self, on: Counts) -> Radio:
        """Some of the devices."""
        names = [field.name for field in fields(self) if field.name != "density"]
        return Radio(**{name: getattr(self, name)[on] for name in names}, density=self.density)

    def response(
        self, log_price: float, low: Array, at_low: Array, high: Array, at_high: Array
    ) -> tuple[Array, Array]:
        """Parameters [S] at which a price is reached: the Illinois rule, and halving.

        Args:
            log_price: logarithm of the price.
            low: least parameters [S].
            at_low: logarithms of the prices there [S].
            high: largest parameters [S].
            at_high: logarithms of the prices there [S].

        Returns:
            u [S] in [low, high], and the logarithm of the price there [S].
        """
        f_low, f_high = at_low - log_price, at_high - log_price
        out = f_low >= 0  # of range
        u, met = np.where(out, low, high), np.where(out, at_low, at_high)
        on = np.flatnonzero((f_low < 0) & (f_high > 0))
        left, ends = self.subset(on), [np.log(low[on]), np.log(high[on]), f_low[on], f_high[on]]
        for turn in range(TURNS):
            if not len(on):
                break
            a, b, fa, fb = ends
            with np.errstate(invalid="ignore"):
                y = a - fa * ((b - a) / (fb - fa))
            secant = (y > a) & (y < b) & (turn % 3 != 2)
            y = np.where(secant, y, 0.5 * (a + b))
            u[on] = np.exp(y)
            met[on] = left.at(u[on])[2]
            f = met[on] - log_price
            up, half = f < 0, np.where(secant, 0.5, 1.0)  # the end that stays weighs half
            a, b = np.where(up, y, a), np.where(up, b, y)
            fa, fb = np.where(up, f, half * fa), np.where(up, half * fb, f)
            wide = b - a > 2.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
            going, ends = np.flatnonzero((np.abs(f) > CLOSE) & wide), [a, b, fa, fb]
            if len(going) < len(on):
                on, left, ends = on[going], left.subset(going), [each[going] for each in ends]
        return u, met

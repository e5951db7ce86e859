"""Sessions and absences of random length, which begin in their stationary law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.presence.timeline import Timeline
from fl.contracts import Array, Streams

EXPONENTIAL, WEIBULL, LOGNORMAL = "exponential", "weibull", "lognormal"


@dataclass(frozen=True)
class LengthLaw:
    """Random lengths with mean 1.

    Args:
        name: exponential, weibull or lognormal.
        shape: k of Weibull, where 1 is the exponential law; sigma of the logarithm of lognormal.
    """

    name: str = EXPONENTIAL
    shape: float = 1.0

    def whole(self, stream: np.random.Generator, count: int) -> Array:
        """Lengths from their beginning, [count]; prefix stable, see `edgesim.seeds`."""
        if self.name == LOGNORMAL:
            sigma = self.shape
            return np.exp(sigma * stream.standard_normal(count) - sigma**2 / 2.0)
        lengths = stream.standard_exponential(count)
        return lengths if self.name == EXPONENTIAL else self._weibull(lengths)

    def rest(self, stream: np.random.Generator, count: int) -> Array:
        """What is left, [count], of lengths that an instant far from the start falls into.

        A long one is met in proportion to its length, anywhere in it: its density is x f(x) / mean.
        Prefix stable, too.
        """
        if self.name == EXPONENTIAL:
            return stream.standard_exponential(count)
        where, quantile = stream.random((count, 2)).T
        if self.name == LOGNORMAL:
            sigma = self.shape
            met = np.exp(sigma * scipy.special.ndtri(quantile) + sigma**2 / 2.0)
        else:
            met = self._weibull(scipy.special.gammaincinv(1.0 + 1.0 / self.shape, quantile))
        return where * met

    def _weibull(self, hazards: Array) -> Array:
        return hazards ** (1.0 / self.shape) / math.gamma(1.0 + 1.0 / self.shape)


def on_off(
    on_s: Array, off_s: Array, streams: Streams, purpose: str, law: LengthLaw | None = None
) -> Timeline:
    """Members that are on and off in turn; with exponential lengths Markov chains.

    They begin in the stationary law: on with probability on_s / (on_s + off_s).

    Args:
        on_s: mean lengths of sessions [members], s.
        off_s: mean lengths of absences [members], s.
        streams: the random streams.
        purpose: name of the streams of these members.
        law: of the lengths; None: exponential.
    """
    drawn, count = law or LengthLaw(), len(on_s)
    starts_on = streams.stream(f"{purpose}/start").random(count) < on_s / (on_s + off_s)

    def edges_after(n: int, before_s: Array) -> Array:
        stream = streams.stream(purpose, round=n)
        lengths = drawn.whole(stream, count) if n else drawn.rest(stream, count)
        return before_s + lengths * np.where(starts_on ^ (n % 2 == 1), on_s, off_s)

    return Timeline(starts_on, edges_after)

"""The losses of a measured trace over simulated time, and the losses that give measured rates."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from edgesim.network.given_losses.trace_file import TraceFileError
from fl.contracts import Array

MAX_BPS_PER_HZ = 100.0  # far above any link
REPEAT, HOLD = "repeat", "hold"


@dataclass(frozen=True, eq=False)
class TracedLosses:
    """The losses of a trace over simulated time.

    Args:
        times_s: when the losses begin to hold [N], s, from 0 on, rising.
        losses_db: [N, K], dB.
        end: repeat: the trace starts again, its last line lasting as long as the one before; or
            hold: the last line holds for ever.
    """

    times_s: Array
    losses_db: Array
    end: str

    @property
    def period_s(self) -> float:
        """Length of the trace, s; inf where it does not start again."""
        if self.end == HOLD or len(self.times_s) == 1:
            return math.inf
        return float(2.0 * self.times_s[-1] - self.times_s[-2])

    def loss_db(self, time_s: float) -> Array:
        """Path loss of all devices [K] at an instant, dB."""
        return self.losses_db[self._place(time_s)[0]]

    def next_change_s(self, time_s: float) -> float:
        """The first instant after ``time_s`` at which a line begins, s; inf: never again."""
        line, passes = self._place(time_s)
        if line + 1 < len(self.times_s):
            return self._begins_s(passes, line + 1)
        return self._begins_s(passes + 1.0, 0) if math.isfinite(self.period_s) else math.inf

    def _place(self, time_s: float) -> tuple[int, float]:
        """(line that holds, passes through the trace before it)."""
        passes = 0.0 if math.isinf(self.period_s) else time_s // self.period_s
        # Division rounds, and could miss the instant that next_change_s gives: compare with that.
        if math.isfinite(self.period_s):
            if self._begins_s(passes + 1.0, 0) <= time_s:
                passes += 1.0
            elif self._begins_s(passes, 0) > time_s:
                passes -= 1.0
        lines = range(len(self.times_s))
        after = bisect_right(lines, time_s, key=lambda line: self._begins_s(passes, line))
        return max(after - 1, 0), passes

    def _begins_s(self, passes: float, line: int) -> float:
        """When a line begins in a pass, s."""
        before_s = passes * self.period_s if passes else 0.0
        return before_s + float(self.times_s[line])


def losses_of_rates(rate_bps: Array, power_w: Array, noise_w: float, bandwidth_hz: float) -> Array:
    """The path loss with which the whole band carries a rate, dB: Liu, eq. (9), solved for h.

    Args:
        rate_bps: r [N, K]; 0: no connection.
        power_w: transmit powers p [K], W.
        noise_w: noise over the whole band, W.
        bandwidth_hz: B, Hz.

    Raises:
        TraceFileError: a rate that no band of that width carries.
    """
    efficiency = rate_bps / bandwidth_hz
    if efficiency.max(initial=0.0) > MAX_BPS_PER_HZ:
        raise TraceFileError(
            f"holds a rate of {rate_bps.max() / 1e6:g} Mbit/s, which is {efficiency.max():.4g} "
            f"bit/s/Hz over the band of {bandwidth_hz / 1e6:g} MHz; at most {MAX_BPS_PER_HZ:g} "
            "are plausible"
        )
    snr = np.expm1(efficiency * math.log(2.0))
    with np.errstate(divide="ignore"):
        return -10.0 * np.log10(snr * noise_w / power_w)

"""Repetitions of an upload as they happen, instead of their expectation.

An upload of N blocks takes T = mean of N numbers of transmissions: normal with mean E[T] and
variance Var[T] / N, within [1, M]. Its rate is the expected one times E[T] / T, and its last block
ends (T_last - 1) round trips later; where that one is lost after M, a status delay later still.
Drawn per upload, from device and starting time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgesim.network.adaptation.block_errors import RepeatedSchemes
from edgesim.scenario.radio.numerology import PREFIX_SHARE
from fl.contracts import Streams
from solvers.rate_laws.efficiency_laws import HullLaw

NANOSECONDS = 1e9
SLOT_S = 1e-3  # without a resource grid
CODEWORD_LAYERS = 4  # that one transport block has at most: TS 38.211, Table 7.3.1.3-1


@dataclass(frozen=True, eq=False)
class DrawnRepetitions:
    """Draws the repetitions of uploads.

    Args:
        schemes: and how their blocks are repeated.
        streams: random streams of the run.
        slot_s: length of a transport block, s.
        round_trip_s: from a transmission to its repetition, s.
        overhead: share of the resource elements that carries no data.
        status_delay_s: until a block that is lost after all repetitions is asked for again, s.
        layers: of a transmission; more than four carry two blocks at once.
    """

    schemes: RepeatedSchemes
    streams: Streams
    slot_s: float = SLOT_S
    round_trip_s: float = 4e-3
    overhead: float = 0.0
    status_delay_s: float = 0.0
    layers: int = 1

    @cached_property
    def _least(self) -> float:
        """The ratio below which only a part of the share is used."""
        return HullLaw(*self.schemes.curve()).least

    def draw(
        self,
        device: int,
        time_s: float,
        snr: float,
        used_hz: float,
        bits: float,
        known_snr: float | None = None,
    ) -> tuple[float, float]:
        """(factor of the expected rate, time after the last bit, s) of an upload.

        Args:
            device: its number.
            time_s: when the upload starts.
            snr: signal-to-noise ratio within the share, linear.
            used_hz: band of the share, Hz.
            bits: to send.
            known_snr: the ratio by which the scheme is chosen; None: the true one, below the first
                corner of the goodput in the part of the share that has the ratio of that corner.
        """
        if not (snr > 0.0 and used_hz > 0.0 and bits > 0.0):
            return 1.0, 0.0
        if known_snr is None and snr < self._least:
            snr, used_hz = self._least, used_hz * snr / self._least
        schemes, snr_db = self.schemes, 10.0 * float(np.log10(snr))
        best = schemes.best(snr_db if known_snr is None else 10.0 * float(np.log10(known_snr)))
        lost = schemes.harq.lost(snr_db, schemes.half_db[best])
        mean, variance = (float(each) for each in schemes.harq.transmissions(lost))
        layers = self.layers / 2.0 if self.layers > CODEWORD_LAYERS else self.layers
        per_block = used_hz * PREFIX_SHARE * (1.0 - self.overhead) * self.slot_s * layers
        blocks = max(bits / (per_block * float(schemes.bits[best])), 1.0)
        stream = self.streams.stream("harq", device=device, round=round(time_s * NANOSECONDS))
        normal, last = stream.standard_normal(), stream.random()
        taken = mean + (max(variance, 0.0) / blocks) ** 0.5 * normal  # rounding: below 0
        taken = min(max(taken, 1.0), float(schemes.harq.most))
        repeated = int((last < lost[:-1]).sum())
        # What is lost after the last repetition is asked for again by the layer above.
        status_s = self.status_delay_s if last < lost[-1] else 0.0
        return mean / taken, repeated * self.round_trip_s + status_s

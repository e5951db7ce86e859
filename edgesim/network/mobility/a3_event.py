"""Handover by event A3 of 3GPP TS 38.331, clause 5.5.4.4: a neighbour becomes better by an offset.

Every sector's reference signal is sampled in regular steps and filtered in decibels by layer 3,
F_n = (1 - a) F_(n-1) + a M_n with a = 2^(-q / 4) (clause 5.5.3.2). The coefficient is made for
samples of 200 ms; for others a becomes 1 - (1 - a)^(step / 200 ms), which keeps its time constant.
A device goes to sector n when F_n - Hys > F_s + Off holds in all samples during the time to trigger
(clause 5.5.4.1). All sectors send with the same power, so that coupling gains take the place of
received powers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array

FILTER_STEP_S = 0.2  # of samples that the filter coefficient is made for
ROUNDING = 1e-9


@dataclass(frozen=True)
class A3Rule:
    """When a device is handed over.

    Args:
        offset_db: Off, dB.
        hysteresis_db: Hys, dB.
        time_to_trigger_s: how long the condition must hold, s.
        filter_coefficient: q of layer 3; 0: no filter.
        sample_s: time between two samples, s.
        never: no device is handed over.
    """

    offset_db: float = 3.0
    hysteresis_db: float = 1.0
    time_to_trigger_s: float = 0.16
    filter_coefficient: float = 4.0
    sample_s: float = 0.04
    never: bool = False

    @property
    def weight(self) -> float:
        """a of a sample."""
        of_200_ms = 2.0 ** (-self.filter_coefficient / 4.0)
        return 1.0 - (1.0 - of_200_ms) ** (self.sample_s / FILTER_STEP_S)

    @property
    def samples(self) -> int:
        """How many samples in a row must meet the condition."""
        return math.ceil(self.time_to_trigger_s / self.sample_s - ROUNDING) + 1


class A3Event:
    """The measurements of K devices of S sectors, sample by sample.

    Args:
        rule: when a device is handed over.
        serving: sector of each device at the start, int [K].
    """

    def __init__(self, rule: A3Rule, serving: Array) -> None:
        self.rule, self.serving = rule, np.array(serving, dtype=int)
        self._everybody = np.arange(len(self.serving))
        self._filtered: Array | None = None  # F, dB [K, S]
        self._held: Array = np.empty(0)  # samples in a row that meet the condition [K, S]

    def sample(self, gain_db: Array) -> tuple[Array, Array]:
        """Take a sample; the devices [D] that are handed over now, and their new sectors [D].

        Args:
            gain_db: M, coupling gains [K, S], dB.
        """
        if self._filtered is None:
            self._filtered, self._held = gain_db.copy(), np.zeros(gain_db.shape, dtype=int)
        else:
            self._filtered += self.rule.weight * (gain_db - self._filtered)
        own = self._filtered[self._everybody, self.serving]
        least = own + self.rule.offset_db + self.rule.hysteresis_db
        better = self._filtered > least[:, None]
        better[self._everybody, self.serving] = False
        self._held = np.where(better, self._held + 1, 0)
        due = (self._held >= self.rule.samples) & (not self.rule.never)
        devices = np.flatnonzero(due.any(axis=1))
        if devices.size:
            strength = np.where(due[devices], self._filtered[devices], -np.inf)
            self.serving[devices] = strength.argmax(axis=1)
            self._held[devices] = 0
        return devices, self.serving[devices]

    def serve(self, device: int, sector: int) -> None:
        """The device is served by a sector from now on, whatever was measured."""
        self.serving[device] = sector
        if self._held.size:
            self._held[device] = 0

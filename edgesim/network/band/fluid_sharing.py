"""The band among those that send, share by share: any noise, fading and orders.

Whenever somebody begins or ends, or the channel changes, all shares and rates are set again: O(K)
an event, where `edgesim.network.band.processor_sharing` needs O(log K).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgesim.network.band.uploads import Upload
from edgesim.network.channel import Channel
from edgesim.network.flows.stalled_links import Patience, stalled
from fl.contracts import Array
from solvers.band_over_time.max_min_shares import max_min_shares

Division = Callable[[Sequence[Upload]], Array]  # uploads [S] -> shares of the band [S]


def weighted_shares(uploads: Sequence[Upload]) -> Array:
    """b_k = phi_k / Phi: max-min fair."""
    return max_min_shares(np.array([each.weight for each in uploads]))[0]


def earliest_deadline_share(uploads: Sequence[Upload]) -> Array:
    """The whole band to the upload that is due first; of equal ones to who began first."""
    shares = np.zeros(len(uploads))
    order = [(each.due_s, each.begun_s, each.device) for each in uploads]
    shares[order.index(min(order))] = 1.0
    return shares


class FluidSharing:
    """The uploads on any channel (`edgesim.network.band.uploads.Band`).

    Args:
        channel: gains of the devices.
        division: who has which share.
    """

    def __init__(self, channel: Channel, division: Division) -> None:
        self.channel, self.division = channel, division
        self.since_s = 0.0
        self._uploads: dict[int, Upload] = {}
        self._patience = Patience()
        self._flowing: list[tuple[float, float]] = []  # (share, rate) of the uploads, in order
        self._wait_s = math.inf
        self._ending: list[Upload] = []  # when that time has passed

    def begin(self, now_s: float, upload: Upload) -> None:
        self._advance(now_s)
        self._uploads[upload.device] = upload
        self._divide()

    def leave(self, now_s: float, device: int) -> None:
        self._advance(now_s)
        del self._uploads[device]
        self._divide()

    def wait_s(self) -> float:
        return self._wait_s

    def ring(self, now_s: float) -> list[Upload]:
        ended = self._ending
        self._advance(now_s)
        for upload in ended:
            upload.bits = 0.0
            del self._uploads[upload.device]
        self._divide()
        return ended

    def record(self) -> dict[str, Any]:
        uploads = [[each.device, each.bits, each.waited_s] for each in self._uploads.values()]
        return {"since_s": self.since_s, "uploads": uploads}

    def restore(self, record: dict[str, Any], uploads: dict[int, Upload]) -> None:
        self.since_s = record["since_s"]
        for device, bits, waited_s in record["uploads"]:
            upload = self._uploads[device] = uploads[device]
            upload.bits, upload.waited_s = bits, waited_s
        self._divide()

    def _advance(self, now_s: float) -> None:
        """Take away what was sent since the last change."""
        passed_s = now_s - self.since_s
        for upload, (share, rate_bps) in zip(self._uploads.values(), self._flowing, strict=True):
            upload.bits -= min(rate_bps * passed_s, upload.bits)
            if share == 0.0:  # who has the band and no connection sends in vain
                upload.waited_s += passed_s
        if now_s >= self.since_s + self._wait_s:
            for upload in self._ending:  # rate x time rounds
                upload.bits = 0.0
        self.since_s = now_s

    def _divide(self) -> None:
        """Set all shares and rates, and when the first upload ends or the channel changes."""
        uploads = list(self._uploads.values())
        self._flowing, self._wait_s, self._ending = [], math.inf, []
        if not uploads:
            return
        shares, now_s = self.division(uploads), self.since_s
        power_w = np.array([each.power_w for each in uploads])
        gain = self.channel.gains(now_s)[[each.device for each in uploads]]
        rates_bps = self.channel.rate_bps(shares, power_w, gain).tolist()
        self._flowing = list(zip(shares.tolist(), rates_bps, strict=True))
        edge_s = self.channel.next_change_s(now_s) - now_s
        needed_s = [
            0.0 if each.bits <= 0.0 else each.bits / rate if rate > 0.0 else math.inf
            for each, rate in zip(uploads, rates_bps, strict=True)
        ]
        for each, share, needed in zip(uploads, shares, needed_s, strict=True):
            if share > 0.0 and math.isinf(needed) and math.isinf(edge_s):
                raise stalled(each.device, each.bits)
        first_s = min(needed_s)
        self._patience.wait(uploads[0].device, uploads[0].bits, math.isfinite(first_s), now_s)
        self._wait_s = min(first_s, edge_s)
        if first_s <= edge_s:
            self._ending = [
                each for each, needed in zip(uploads, needed_s, strict=True) if needed == first_s
            ]

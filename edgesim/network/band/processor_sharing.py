"""Weighted processor sharing by virtual time: the band among those that send, exactly.

With a noise power whatever the share (Liu, eq. (9)) rates are linear in shares, so that upload k
needs c_k = bits / r_k seconds of the whole band. With b_k = phi_k / Phi over those that send,
virtual time V with dV/dt = 1 / Phi ends upload k when V reaches its tag F_k = V(begin) + c_k /
phi_k (Parekh and Gallager, IEEE/ACM Trans. Networking, 1993). Who comes or goes changes the speed
of V and no tag: an event costs O(log K).
"""

from __future__ import annotations

import heapq
import math
from typing import Any

from edgesim.network.band.uploads import Upload
from edgesim.network.channel import Channel
from edgesim.network.flows.stalled_links import stalled

REFRESH = 4096  # uploads after which rounding is cleared: V = 0 and Phi summed anew


class ProcessorSharing:
    """The uploads on a static channel with a noise power (`edgesim.network.band.uploads.Band`).

    Args:
        channel: gains of the devices.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.since_s = self.virtual = self.weights = 0.0  # time of the last change; V; Phi
        self.count = 0  # uploads since the last refresh
        self._tags: dict[int, tuple[float, float, Upload]] = {}  # device -> (F, whole rate, upload)
        self._next: list[
            tuple[float, int]
        ] = []  # heap of (F, device), also of those that have left

    def begin(self, now_s: float, upload: Upload) -> None:
        gain = self.channel.gains(now_s)[upload.device]
        rate_bps = float(self.channel.rate_bps(1.0, upload.power_w, gain))
        if rate_bps <= 0.0 or upload.weight <= 0.0:
            raise stalled(upload.device, upload.bits)
        self._advance(now_s)
        self.weights += upload.weight
        self._put(self.virtual + upload.bits / rate_bps / upload.weight, rate_bps, upload)
        self.count += 1
        if self.count >= REFRESH:
            self._refresh()

    def leave(self, now_s: float, device: int) -> None:
        self._advance(now_s)
        tag, rate_bps, upload = self._tags[device]
        left = (tag - self.virtual) * upload.weight * rate_bps
        upload.bits = min(max(left, 0.0), upload.bits)
        self._remove(device)

    def wait_s(self) -> float:
        while self._next and not self._is_current(*self._next[0]):
            heapq.heappop(self._next)
        return (self._next[0][0] - self.virtual) * self.weights if self._next else math.inf

    def ring(self, now_s: float) -> list[Upload]:
        self.wait_s()
        tag, device = heapq.heappop(self._next)
        upload = self._tags[device][2]
        # V is the tag: time x speed rounds.
        self.since_s, self.virtual, upload.bits = now_s, tag, 0.0
        self._remove(device)
        return [upload]

    def record(self) -> dict[str, Any]:
        tags = [[device, tag] for device, (tag, _, _) in self._tags.items()]
        named = {"since_s": self.since_s, "virtual": self.virtual, "weights": self.weights}
        return {**named, "count": self.count, "tags": tags}

    def restore(self, record: dict[str, Any], uploads: dict[int, Upload]) -> None:
        self.since_s, self.virtual = record["since_s"], record["virtual"]
        self.weights, self.count = record["weights"], record["count"]
        for device, tag in record["tags"]:
            upload = uploads[device]
            gain = self.channel.gains(self.since_s)[device]
            self._put(tag, float(self.channel.rate_bps(1.0, upload.power_w, gain)), upload)

    def _advance(self, now_s: float) -> None:
        if self._tags:
            self.wait_s()  # the least tag, which V does not pass
            virtual = self.virtual + (now_s - self.since_s) / self.weights
            self.virtual = min(virtual, self._next[0][0])
        self.since_s = now_s

    def _put(self, tag: float, rate_bps: float, upload: Upload) -> None:
        self._tags[upload.device] = tag, rate_bps, upload
        heapq.heappush(self._next, (tag, upload.device))

    def _remove(self, device: int) -> None:
        self.weights -= self._tags.pop(device)[2].weight
        if not self._tags:  # nobody sends: all rounding is forgotten
            self.virtual = self.weights = 0.0
            self.count = 0
            self._next.clear()

    def _is_current(self, tag: float, device: int) -> bool:
        return device in self._tags and self._tags[device][0] == tag

    def _refresh(self) -> None:
        self.count = 0
        self._tags = {
            device: (tag - self.virtual, rate_bps, upload)
            for device, (tag, rate_bps, upload) in self._tags.items()
        }
        self.virtual = 0.0
        self.weights = math.fsum(upload.weight for _, _, upload in self._tags.values())
        self._next = [(tag, device) for device, (tag, _, _) in self._tags.items()]
        heapq.heapify(self._next)

"""An upload that shares the band with others, and what keeps several of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(slots=True, eq=False)
class Upload:
    """What one device sends.

    Args:
        device: k.
        bits: that are left, bit.
        weight: phi, by which the band is divided.
        power_w: p, transmit power, W.
        begun_s: simulated time at which it began, s.
        due_s: simulated time by which it should end, s; inf: no deadline.
        waited_s: time for which it had no band, s.
    """

    device: int
    bits: float
    weight: float
    power_w: float
    begun_s: float
    due_s: float = float("inf")
    waited_s: float = 0.0


class Band(Protocol):
    """The uploads that share the band; time is given from outside, and never goes back.

    ``since_s`` is the time of the last change of who sends, or of the channel, s.
    """

    since_s: float

    def begin(self, now_s: float, upload: Upload) -> None:
        """One more upload."""

    def leave(self, now_s: float, device: int) -> None:
        """An upload is given up; its ``bits`` and ``waited_s`` are up to date afterwards."""

    def wait_s(self) -> float:
        """Time from ``since_s`` until something happens by itself, s; inf: never."""

    def ring(self, now_s: float) -> list[Upload]:
        """That time has come: the uploads that have ended, whose bits are all sent."""

    def record(self) -> dict[str, Any]:
        """What a checkpoint must know, for JSON."""

    def restore(self, record: dict[str, Any], uploads: dict[int, Upload]) -> None:
        """The state of a record; ``uploads`` have all but the bits left and the time waited."""

"""Uploads that wait for a rate that does not come."""

from __future__ import annotations

from edgesim.errors import RunError

MOST_IN_VAIN = 100_000  # changes of a channel, one after the other, through which nobody sends


class StalledLinkError(RunError):
    """Bits wait for a rate that will always be 0."""


def stalled(device: int, bits: float, share: float = 1.0) -> StalledLinkError:
    """The error of a device whose bits will never arrive."""
    why = "a rate of 0 that will never change"
    if share <= 0.0:
        why = "no share of the band; allocation.solver gives one to every device that sends"
    return StalledLinkError(f"device {device} has {bits:g} bit to carry but {why}")


class Patience:
    """Counts the changes of a channel through which uploads have waited in vain."""

    def __init__(self) -> None:
        self.changes = 0

    def wait(self, device: int, bits: float, moves: bool, now_s: float) -> None:
        """Another stretch begins.

        Args:
            device: that waits.
            bits: that it has to carry.
            moves: whether anything is sent in this stretch.
            now_s: simulated time, s.

        Raises:
            StalledLinkError: there were too many without a rate, one after the other.
        """
        self.changes = 0 if moves else self.changes + 1
        if self.changes > MOST_IN_VAIN:
            why = f"no rate through {MOST_IN_VAIN} changes of the channel, until {now_s:g} s"
            advice = "keep it in reach, or let rounds end without it (clock.mode: deadline)"
            problem = f"device {device} has {bits:g} bit to carry but {why}; {advice}"
            raise StalledLinkError(problem)

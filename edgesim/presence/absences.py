"""What becomes of a job whose device leaves or crashes: it is lost, starts again, or goes on."""

from __future__ import annotations

from dataclasses import dataclass

from edgesim.presence.presence import Presence
from fl.contracts import Array

LOST, RESTART, RESUME = "lost", "restart", "resume"


@dataclass(frozen=True, eq=False)
class Absences:
    """How the devices of a cell come, go and crash.

    Args:
        presence: who is there.
        on_leave: lost, restart or resume, of each device [K].
        on_failure: the same, where a device crashes.
        repair_s: time from a crash until the device goes on [K], s.
    """

    presence: Presence
    on_leave: tuple[str, ...]
    on_failure: tuple[str, ...]
    repair_s: Array

    def of(self, devices: Array) -> Absences:
        """Those of some devices [N], by numbers of their own from 0 on."""
        return Absences(
            self.presence.of(devices),
            tuple(self.on_leave[k] for k in devices.tolist()),
            tuple(self.on_failure[k] for k in devices.tolist()),
            self.repair_s[devices],
        )


@dataclass(frozen=True)
class Away:
    """The cause of an interruption after which the job goes on.

    Args:
        cause: left or failed.
        back_s: when the device goes on, s.
        keeps_work: it goes on where it stopped; otherwise it starts again.
    """

    cause: str
    back_s: float
    keeps_work: bool

"""The rules of each clock; everything else about them is shared (`edgesim.clocks.server_loop`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgesim.clocks.flights import Desk, Flight
from edgesim.clocks.staleness_weights import StalenessWeight, constant
from edgesim.engine.rounds import CANCELLED, LATE, SLACK
from fl.contracts import RoundPlan, View


@dataclass(frozen=True)
class Rules:
    """How a clock answers the questions of the server's loop; these answers are ``synchronous``.

    The server waits for everyone: T_g = max_k T_k, Liu, eq. (29); late uploads are aggregated.
    """

    overlapping = False  # can a device be at work while a version is made?
    records_jobs = False  # do the tables say more of each job than that it was in time or late?
    max_staleness: int | None = None  # older updates are discarded
    step = 1.0  # factor of what is left: the server's step, or FedAsync's mixing weight
    from_now = False  # is a change measured from the model of now instead of the one downloaded?
    cuts_steps = False  # are steps left out that a device has no time for?
    cuts_jobs = False  # is a device told to send what it has while there is time to?

    def room(self, desk: Desk) -> int | None:
        """How many devices may start now; None: all that the method asks."""
        return 0 if desk.asked else None

    def waiting(self, desk: Desk) -> list[int]:
        """Devices that are back and keep their place."""
        return []

    def taken(self, desk: Desk) -> list[int]:
        """Devices that cannot be asked now."""
        return [*desk.out, *self.waiting(desk)]

    def quiet_landings(self, desk: Desk) -> float:
        """So many jobs can arrive before the clock may act; 0: it may at each of them."""
        return 0.0

    def relayed(self, desk: Desk) -> int:
        """So many jobs can be handed out, one now and one at each arrival, before a version is
        made; 0: an arrival makes no room.
        """
        return 0

    def asks_others(self, desk: Desk, view: View, plan: RoundPlan) -> bool:
        """Are others asked at once in place of devices that a plan has left out?

        Args:
            desk: after the jobs of the plan have begun.
            view: for which the plan was made.
            plan: of the devices that were asked last.
        """
        return False

    def tick_s(self, threshold_s: float) -> float:
        """Seconds from a version until the clock acts by itself; inf: never."""
        return math.inf

    def interrupts(self, desk: Desk) -> str | None:
        """Why the devices that are still at work are interrupted now; None: they go on."""
        return None

    def batch(self, desk: Desk) -> list[Flight] | None:
        """The jobs of which a new version is made now; None: it is too early."""
        return list(desk.held) if desk.asked and not desk.out else None

    def weight(self, staleness: int) -> float:
        """s(tau), what staleness leaves of an update."""
        return 1.0


@dataclass(frozen=True)
class Deadline(Rules):
    """A round ends at T_th at the latest; late devices are interrupted.

    Args:
        cuts_steps: devices leave out steps that they have no time for.
        cuts_jobs: devices that still compute when an upload would just end in time send what they
            have.
    """

    cuts_steps: bool = False
    cuts_jobs: bool = False

    def tick_s(self, threshold_s: float) -> float:
        return threshold_s * (1.0 + SLACK)

    def interrupts(self, desk: Desk) -> str | None:
        return LATE if desk.ticked and desk.out else None


@dataclass(frozen=True)
class OverCommit(Rules):
    """More devices are asked than are needed, and the last ones are interrupted.

    Bonawitz et al., "Towards Federated Learning at Scale", MLSys 2019, Section 2.2.

    Args:
        needed: K, arrivals that close a round.
        asked: m, devices that are asked.
    """

    needed: int = 1
    asked: int = 1
    records_jobs = True

    def room(self, desk: Desk) -> int | None:
        return 0 if desk.asked else self.asked

    def interrupts(self, desk: Desk) -> str | None:
        return CANCELLED if len(desk.held) >= self.needed and desk.out else None


@dataclass(frozen=True)
class Overlapping(Rules):
    """Devices go on while versions are made; each has a slot of 1 / M of the band.

    Args:
        slots: M, devices at work at most.
        staleness_weight: s(tau).
        step: see `Rules.step`.
        from_now: see `Rules.from_now`.
        max_staleness: older updates are discarded; None: none are.
    """

    slots: int = 1
    staleness_weight: StalenessWeight = constant
    step: float = 1.0
    from_now: bool = False
    overlapping = True
    records_jobs = True

    def room(self, desk: Desk) -> int | None:
        return self.slots - len(desk.out)

    def asks_others(self, desk: Desk, view: View, plan: RoundPlan) -> bool:
        # FedBuff replaces at once whoever leaves a slot.
        others = len(view.idle) - len(plan.grants) - len(plan.infeasible)
        return bool(plan.infeasible and others and self.room(desk))

    def weight(self, staleness: int) -> float:
        return self.staleness_weight(staleness)


@dataclass(frozen=True)
class Buffered(Overlapping):
    """A version is made of every K arrivals: Nguyen et al., AISTATS 2022, Algorithm 1 (FedBuff).

    With K = 1 and `from_now` it is FedAsync: Xie et al., 2019, Algorithm 1.

    Args:
        buffer: K.
        until_used: a slot is taken until its update is used; otherwise until it has arrived.
    """

    buffer: int = 1
    until_used: bool = False

    def waiting(self, desk: Desk) -> list[int]:
        return desk.devices_held() if self.until_used else []

    def room(self, desk: Desk) -> int | None:
        return self.slots - len(desk.out) - (len(desk.held) if self.until_used else 0)

    def quiet_landings(self, desk: Desk) -> float:
        # Otherwise an arrival, or one that is discarded, makes room.
        waits = self.until_used and self.max_staleness is None and self.room(desk) == 0
        return max(0, self.buffer - len(desk.held) - 1) if waits else 0.0

    def relayed(self, desk: Desk) -> int:
        return 0 if self.until_used else self.buffer - len(desk.held)

    def batch(self, desk: Desk) -> list[Flight] | None:
        # The first to arrive; those of one instant were taken in by device.
        return desk.held[: self.buffer] if len(desk.held) >= self.buffer else None


@dataclass(frozen=True)
class Windowed(Overlapping):
    """A version is made every W seconds of what has come; who is still at work goes on.

    Args:
        window_s: W, s.
    """

    window_s: float = math.inf

    def room(self, desk: Desk) -> int | None:
        return 0 if desk.asked else super().room(desk)

    def quiet_landings(self, desk: Desk) -> float:
        return math.inf if desk.asked else 0.0

    def tick_s(self, threshold_s: float) -> float:
        return self.window_s

    def batch(self, desk: Desk) -> list[Flight] | None:
        return list(desk.held) if desk.ticked else None

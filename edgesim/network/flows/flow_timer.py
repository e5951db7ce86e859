"""The one timer of all flows of a link, in simulated time.

It rings when the next flow ends, or when the channel changes first. Whatever changes at an instant,
rates are computed once after it: also where a thousand uploads begin together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import simpy

from edgesim.network.flows.flow_table import FlowTable
from edgesim.network.flows.stalled_links import Patience, stalled
from fl.contracts import Array

NextChange = Callable[[float], float]  # time, s -> the next change after it, s


class FlowTimer:
    """Flows that begin, end and are stopped as events of a simulation.

    Args:
        env: the simulation environment.
        table: the flows.
        next_change_s: when rates change that no flow has changed; inf: never.
    """

    def __init__(self, env: simpy.Environment, table: FlowTable, next_change_s: NextChange) -> None:
        self.env, self.table, self.next_change_s = env, table, next_change_s
        self.others_come = False  # a rate of 0 may change by what is no flow yet
        self._done: dict[int, simpy.Event] = {}
        self._settling, self._ring_number = False, 0
        self._due: Array = np.empty(0, dtype=int)
        self._patience = Patience()

    def start(self, device: int, bits: float) -> simpy.Event:
        """A flow begins; the event of its last bit."""
        self.table.begin(device, bits, self.env.now)
        self._done[device] = done = self.env.event()
        self.changed()
        return done

    def stop(self, device: int) -> float:
        """End a flow, if it still goes on; the bits that are left."""
        if self._done.pop(device, None) is None:
            return 0.0
        left = self.table.end(device, self.env.now)
        self.changed()
        return left

    def changed(self) -> None:
        """Rates are others from now on; they are computed at the end of this instant."""
        if not self._settling:
            self._settling = True
            # An event of no delay comes after those of this instant that are there already.
            self._at(self.env.now, self._settle)

    def _at(self, time_s: float, call: Callable[[], None]) -> None:
        event = self.env.timeout(max(time_s - self.env.now, 0.0))
        if event.callbacks is not None:
            event.callbacks.append(lambda _: call())

    def _settle(self) -> None:
        self._settling = False
        self.table.settle(self.env.now)
        self._wind_up()

    def _wind_up(self) -> None:
        """Let the timer ring when the next flow ends or the channel changes."""
        self._ring_number += 1
        if not self._done:
            return
        finish_s, first = self.table.next_finish()
        change_s = self.next_change_s(self.env.now)
        moves, first_device = math.isfinite(finish_s) or self.others_come, next(iter(self._done))
        self._patience.wait(first_device, self.table.left[first_device], moves, self.env.now)
        if math.isinf(finish_s) and math.isinf(change_s):
            self._refuse_to_wait()
            return
        self._due = first if finish_s <= change_s else first[:0]
        self._at(min(finish_s, change_s), partial(self._ring, self._ring_number))

    def _ring(self, number: int) -> None:
        if number != self._ring_number:
            return  # rates have changed since, and another timer was set
        for device in self._due.tolist():
            if device not in self._done:
                continue  # stopped in this instant: rates are computed again at its end
            # Rate x time rounds: where the timer of the last bit rang, all bits are sent.
            self.table.end(device, self.env.now)
            self._done.pop(device).succeed()
        self.changed()

    def _refuse_to_wait(self) -> None:
        waiting = self.table.stalled()
        if waiting.size and not self.others_come:
            raise stalled(int(waiting[0]), self.table.left[waiting[0]])

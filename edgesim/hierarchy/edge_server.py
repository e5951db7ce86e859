"""An edge server: to the cloud a device, whose part in a round is rounds of the same loop below."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import simpy

from edgesim.clocks.rules import Rules
from edgesim.clocks.server_loop import ServerLoop
from edgesim.clocks.waiting_devices import charge_idle_power, drawing_idle_power
from edgesim.engine.participants import NoParticipantsError
from edgesim.engine.progress_limits import NoProgressError, RestartsError
from edgesim.hierarchy.backhaul import Transfers
from edgesim.hierarchy.edge_cells import EdgeCell
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from edgesim.records.run_tables.table_columns import Columns
from fl.contracts import AtWork, JobTrainer, MethodHooks, Observer, Scores, State
from solvers import NamedDevicesError

Events = Generator[simpy.Event, Any, State]


class _Unobserved(Observer):
    """Between two exchanges nothing is evaluated and no checkpoint written."""

    def scores(self, g: int, state: State) -> Scores | None:
        return None

    def finished(self, g: int, state: State, at_work: AtWork | None = None) -> None:
        pass


class EdgeServer:
    """One edge and its rounds.

    Args:
        edge: its devices and radio.
        rules: of the clock of its rounds.
        env: the simulation environment.
        cell: its devices and links, of that environment.
        method: the method's hooks for its devices.
        trainer: takes their jobs.
        local_rounds: kappa_2, rounds between two exchanges with the cloud.
        model_bits: of the model that travels to the cloud and back.
        new_log: makes an empty log of its rounds.
    """

    def __init__(
        self,
        edge: EdgeCell,
        rules: Rules,
        env: simpy.Environment,
        cell: Cell,
        method: MethodHooks,
        trainer: JobTrainer,
        local_rounds: int,
        model_bits: float,
        new_log: Callable[[], EventLog],
    ) -> None:
        self.edge, self.env, self.cell, self.new_log = edge, env, cell, new_log
        self.local_rounds, self.model_bits = local_rounds, model_bits
        self.loop = ServerLoop(rules, env, cell, method, trainer, new_log(), _Unobserved())
        self.transfers: list[tuple[str, float, float]] = []  # (direction, start_s, end_s)

    def take_part(self, g: int, state: State, transfers: Transfers) -> Events:
        """Round g of the cloud: download, kappa_2 rounds, upload; its value is the state."""
        self.loop.log, self.transfers = self.new_log(), []
        self.loop.log.attach(self.env)
        yield from self._transfer("down", transfers)
        for local in range(g * self.local_rounds, (g + 1) * self.local_rounds):
            try:
                state = yield from self.loop.next_version(local, state, is_last=False)
            except (NamedDevicesError, RestartsError) as error:
                raise error.of(self.edge.members) from error
            except (NoParticipantsError, NoProgressError) as error:
                raise type(error)(f"edge {self.edge.number}: {error}") from error
        yield from self._transfer("up", transfers)
        return state

    def _transfer(self, direction: str, transfers: Transfers) -> Generator[simpy.Event, Any, None]:
        start_s = self.env.now
        yield from transfers.carry(self.edge.number, self.model_bits, up=direction == "up")
        self.transfers.append((direction, start_s, self.env.now))

    def wait_ends(self, g: int) -> None:
        """The cloud has ended round g: charge idle power until now to the devices that wait."""
        last = (g + 1) * self.local_rounds - 1
        devices = drawing_idle_power(self.cell, self.cell.view(last), last)
        charge_idle_power(self.loop.log, self.cell, self.loop.desk, last, devices)
        self.loop.desk.idle_since_s[:] = self.env.now
        if self.edge.air is not None:  # nobody has a grant until the next exchange
            self.cell.uplink.begin_round(())

    def rows(self) -> tuple[dict[str, Columns], Columns]:
        """The tables of the rounds below, and the spans of waiting for other edges."""
        log = self.loop.log
        return log.drain(), log.take_closed_spans()


def started(state: State, of_first: State) -> State:
    """A start of an edge with the model of the first one, and what it remembers itself."""
    return replace(state, w=of_first.w) if hasattr(state, "w") else state

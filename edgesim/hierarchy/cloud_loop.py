"""The cloud's loop: hands out the model, waits for all edges, takes the mean of their models.

Client-edge-cloud federated learning, HierFAVG: Liu, Zhang, Song and Letaief, ICC 2020, Algorithm 1.
Edges do not wait for one another below the cloud, so a round takes max_e(kappa_2 T_e + t_bh,e).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import simpy

from edgesim.engine.stop_rule import StopRule
from edgesim.hierarchy.backhaul import Transfers
from edgesim.hierarchy.edge_server import EdgeServer, started
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.hierarchy.round_of_edges import round_of_edges
from edgesim.hierarchy.tiered_state import TieredState, with_mean_model
from edgesim.records.event_log import EventLog
from fl.contracts import Observer, State, Tensor
from fl.method_base.state_answers import first_state

Events = Generator[simpy.Event, Any, TieredState]


class CloudLoop:
    """The cloud of a run.

    Args:
        env: the simulation environment.
        hierarchy: the edges and the backhaul.
        servers: one per edge.
        shared: weights that travel, bool [P]; None: nothing is learned.
        weights: of each edge in the mean.
        log: takes the rows.
        observer: evaluates, and writes the checkpoint.
        stop: ends the run before its last round; None: nothing does.
        jobs_before: that were handed out before the first of the rounds still to play.
    """

    def __init__(
        self,
        env: simpy.Environment,
        hierarchy: Hierarchy,
        servers: Sequence[EdgeServer],
        shared: Tensor | None,
        weights: Sequence[float],
        log: EventLog,
        observer: Observer,
        stop: StopRule | None = None,
        jobs_before: int = 0,
    ) -> None:
        self.stop, self.jobs_before = stop or StopRule(), jobs_before
        self.env, self.hierarchy, self.servers = env, hierarchy, servers
        self.shared, self.weights, self.log, self.observer = shared, weights, log, observer
        self.transfers = Transfers(env, hierarchy.backhaul)
        log.attach(env)

    def start(self) -> TieredState:
        """The state before the first round: every edge has the same model."""
        states = [first_state(server.loop.method) for server in self.servers]
        members = tuple(tuple(each.edge.members.tolist()) for each in self.servers)
        return TieredState(0, tuple(started(each, states[0]) for each in states), members)

    def rounds(self, rounds: range, state: TieredState) -> Events:
        """Play rounds, one after the other; its value is the last state."""
        for g in rounds:
            state = yield from self.next_round(g, state)
            if self.stop.reached:
                break
        return state

    def next_round(self, g: int, state: TieredState) -> Events:
        """One exchange of all edges with the cloud."""
        start_s, before = self.env.now, self._jobs()
        parts = [
            self.env.process(server.take_part(g, own, self.transfers))
            for server, own in zip(self.servers, state.edges, strict=True)
        ]
        yield self.env.all_of(parts)
        states: tuple[State, ...] = tuple(part.value for part in parts)
        if self.shared is not None:
            states = with_mean_model(states, self.shared, self.weights)
        state = TieredState(g + 1, states, state.members)
        for server in self.servers:
            server.wait_ends(g)
        self.stop.look(self.env.now, self._jobs())
        scores = self.observer.scores(g, state)
        ended = g, start_s, self.env.now, self.hierarchy, self.servers, scores
        self.log.add(round_of_edges(*ended, before))
        self.observer.finished(g, state)
        return state

    def _jobs(self) -> int:
        """How many jobs all edges have handed out so far."""
        return self.jobs_before + sum(server.loop.desk.jobs for server in self.servers)

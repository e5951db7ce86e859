"""The cells of a hierarchy: each edge with its devices, its radio and its part of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from edgesim.errors import InfeasibleScenarioError
from edgesim.hierarchy import association
from edgesim.hierarchy.edge_streams import EdgeStreams
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.grants import granted_amounts, grants_of
from edgesim.network.subnetwork import SharedAir
from edgesim.scenario.loader import Scenario
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Streams
from fl.method_base.hook_answers import demand_of
from fl.method_base.method import Method
from fl.task import LearningTask
from solvers import InfeasibleError

MS = 1e3


@dataclass(frozen=True, eq=False)
class EdgeCell:
    """One edge and what belongs to it; devices are numbered from 0 in the order of ``members``.

    Args:
        number: of the edge.
        members: its devices, by their numbers in the scenario, int [N].
        network: the section, with the edge's band.
        streams: random streams of its devices.
        fleet: its devices, the edge at the origin.
        channel: its links.
        method: of its devices and their data.
        capability: g -> z [N] in round g of the edge.
        threshold_s: T_th of one of its rounds, s; inf: none.
        air: of the network that the edges share; None: every edge has a band of its own.
    """

    number: int
    members: Array
    network: NetworkSection
    streams: EdgeStreams
    fleet: Fleet
    channel: Channel
    method: Method
    capability: Callable[[int], Array]
    threshold_s: float
    air: SharedAir | None = None


def time_left_s(scenario: Scenario, backhaul_s: float) -> float:
    """T_th of a round of an edge: what a round of the cloud leaves it, (T_th - t_bh) / kappa_2."""
    threshold_s, tiers = scenario.budget.latency_threshold_s, scenario.tiers
    if threshold_s is None or tiers is None:
        return math.inf
    return max(threshold_s - backhaul_s, 0.0) / tiers.local_rounds


def edge_threshold_s(scenario: Scenario, backhaul_s: float) -> float:
    """`time_left_s` of an edge that has devices.

    Raises:
        InfeasibleScenarioError: nothing is left.
    """
    left_s, threshold_s = time_left_s(scenario, backhaul_s), scenario.budget.latency_threshold_s
    if threshold_s is not None and left_s <= 0.0:
        raise InfeasibleScenarioError(
            f"no device can meet budget.latency_threshold = {threshold_s * MS:g} ms, because the "
            f"backhaul alone takes {backhaul_s * MS:.6g} ms; give more than that"
        )
    return left_s


def rows_of(table: Any, members: Array) -> Any:
    """A dataclass of arrays [K] with the rows of some devices; other fields stay."""
    columns = {each.name: getattr(table, each.name) for each in fields(table)}
    taken = {
        name: column[members] for name, column in columns.items() if isinstance(column, np.ndarray)
    }
    return replace(table, **taken)


def task_of(task: LearningTask, members: Array, streams: Streams) -> LearningTask:
    """The learning task of some of its devices."""
    data: Any = task.data
    if not hasattr(data, "train_index"):  # data that are counted, not looked at
        data = replace(data, samples=data.samples[members])
        return replace(task, data=data, streams=streams)

    def of_members(index: Any) -> list[Array]:
        return [index[k] for k in members.tolist()] if len(index) else []

    data = replace(
        data,
        images=lambda whole=data: (whole.x_train, whole.x_test),
        train_index=of_members(data.train_index),
        test_index=of_members(data.test_index),
        validation_index=of_members(data.validation_index),
    )
    return replace(task, data=data, streams=streams)


CellOf = Callable[
    [int, Array], Cell
]  # (edge, its devices) -> a cell of all devices that plans them


def plan_cost(cell_of: CellOf, method: Method) -> association.Cost:
    """What the plan of a round costs an edge: the pruning that it needs, or the time that it takes.

    It is the sum of w_k rho_k where the method leaves the ratios to the solver, and else the time
    of the slowest device, s. Devices that cannot take part make it inf.

    Args:
        cell_of: what plans devices of an edge, by the numbers of all devices.
        method: of all devices.
    """

    def cost(e: int, members: tuple[int, ...]) -> float:
        if not members:
            return 0.0
        devices = np.array(members)
        cell = cell_of(e, devices)
        view = cell.view(0, everyone=True)
        demand = demand_of(method, None, view, devices)
        try:
            plan = cell.plan(demand, view)
        except InfeasibleError:
            return math.inf
        if plan.infeasible:
            return math.inf
        grants = grants_of(plan)
        if np.any(demand.rho_max > demand.rho_min):
            stretched = plan.budget_s > cell.budget_s
            return math.inf if stretched else float(np.dot(demand.weight, grants.rho))
        cycles, bits_up, bits_down = granted_amounts(cell.fleet, demand, grants)
        down_s, up_s = cell.planned_link_s(plan, bits_down, bits_up)
        return float(np.max(down_s + cycles / grants.cpu_hz + up_s)) + cell.channel.upload_lag_s

    return cost


def gathered(edges: tuple[EdgeCell, ...], columns: list[Any]) -> Array:
    """One array [K] from an array [N] of each edge, in the order of its members."""
    devices = np.concatenate([edge.members for edge in edges])
    values = np.concatenate([np.asarray(each) for each in columns])
    found = np.empty_like(values)
    found[devices] = values
    return found

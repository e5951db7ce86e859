"""The plan of who takes part in a round, who cannot, and how long a round without anybody is."""

from __future__ import annotations

import math

import numpy as np

from edgesim.errors import RunError
from edgesim.network.cell import Cell
from fl.contracts import Grant, MethodHooks, Outcome, RoundPlan, State, View
from fl.errors import MethodError
from fl.method_base.hook_answers import demand_of


class NoParticipantsError(RunError):
    """No device can take part in a round, and no threshold ends that round."""


def make_plan(cell: Cell, method: MethodHooks, state: State, view: View) -> RoundPlan:
    """Ask the method which devices and at what cost, the cell for shares and pruning ratios.

    Raises:
        MethodError: the method selected a device that is not idle, or one twice.
    """
    chosen = method.select(state, view) if len(view.idle) else view.idle
    given, chosen = chosen, np.asarray(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        problem = f"names a method whose select gives {given!s:.80}; return devices, int [S]"
        raise MethodError("name", problem)
    if view.wanted is not None and len(chosen) > view.wanted:  # it does not read `View.wanted`
        lots = cell.streams.stream("dispatch", round=view.occasion).random(len(cell.fleet))
        chosen = np.sort(chosen[np.argsort(lots[chosen], kind="stable")[: view.wanted]])
    place = np.minimum(np.searchsorted(view.idle, chosen), len(view.idle) - 1)  # idle ones rise
    if not (view.idle[place] == chosen).all() or len(np.unique(chosen)) != len(chosen):
        problem = f"names a method whose select gives {np.asarray(chosen).tolist()[:20]}"
        raise MethodError("name", f"{problem}; return devices of view.idle, each once")
    if not len(chosen):
        return RoundPlan((), budget_s=cell.budget_s)
    return cell.plan(demand_of(method, state, view, chosen), view)


def empty_round_s(cell: Cell, g: int) -> float:
    """Length of round g if no device takes part, s: the threshold.

    Raises:
        NoParticipantsError: there is no threshold.
    """
    if math.isinf(cell.budget_s):
        instead = "or raise the availability of the devices"
        if cell.absences is not None and cell.absences.presence.parts:
            instead = "or let devices be there for longer (devices.presence)"
        if cell.running.has_batteries:
            instead += " or what their batteries hold"
        raise NoParticipantsError(
            f"no device can take part in round {g}, or the selection asks none, and no latency "
            f"threshold would end it; give budget.latency_threshold, {instead}"
        )
    return cell.budget_s


def left_out(cell: Cell, view: View, plan: RoundPlan) -> list[Outcome]:
    """The outcomes of devices that cannot meet the threshold, by device."""
    outcomes = []
    for k in sorted(plan.infeasible):
        grant = Grant(k, 0.0, 0.0, float(view.cpu_hz[k]), float(cell.fleet.tx_power_w[k]))
        outcomes.append(
            Outcome(grant, None, "infeasible", received=False, trained=False, finish_s=math.nan)
        )
    return outcomes

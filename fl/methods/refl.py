"""REFL: selection by availability, and late updates with a damped weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp
from typing import Any, ClassVar

import numpy as np

from fl.contracts import (
    Array,
    Demand,
    Grant,
    Job,
    Payload,
    Phase,
    Report,
    Tensor,
    Update,
    View,
    Work,
)
from fl.errors import MethodError
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedavg import FedAvg

Values = Any  # [P], a numpy array or a torch tensor
PROGRAM = "Abdelmoniem et al., released program"


@dataclass(frozen=True, eq=False)
class REFL(FedAvg):
    """FedAvg that asks first the devices that will soon be gone, and uses late updates as well.

    Abdelmoniem et al., "REFL: Resource-Efficient Federated Learning", EuroSys 2023. A device that
    trained but did not arrive holds its update; in the next round in which it is there it only
    sends it, in one of the places of that round. State.local is device -> held update [P].
    What travels: all weights, down and up; a held update up, once more.

    Departs from the paper:
        Whether a device will be there in the next round is predicted from how often it stayed so
        far, not by itself.
        Who has not finished computing at the deadline of the clock loses its update; the paper lets
        it go on.
        A held update never expires: its weight falls with its age alone.
        A round is as long as the clock makes it. With equal deviations, and without fresh updates,
        all deviate most.
    """

    source: ClassVar[str] = "Abdelmoniem et al., EuroSys 2023, and released program"
    stale: ClassVar[str] = "refuse"
    participants: int | None = param(
        10, "devices asked per round, N_0", source="FedLPS, Section V", ge=1
    )
    rest_rounds: int = param(
        5, "rounds that a device rests after it was asked", source=PROGRAM, ge=0
    )
    least_fresh: float = param(
        0.5, "share of N_0 that trains, however many are late", source=PROGRAM, gt=0, le=1
    )
    beta: float = param(
        0.35, "share of the deviation in the weight of a late update", source=PROGRAM, ge=0, le=1
    )
    deviation_scale: float = param(
        1.0, "c in the weight of a late update", source=PROGRAM, ge=1, le=MAX_RATE
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if values["participants"] is None:
            return MethodError(
                "participants", "is none, where REFL has nobody to choose from; give a number"
            )
        return super().conflict(values)

    # --- who -------------------------------------------------------------------------------------

    def select(self, state: State, view: View) -> Array:
        """Those who hold an update; of the others first who may soon go, last who should rest."""
        assert self.participants is not None  # see conflict
        holds = np.isin(view.idle, list(state.local))
        late, free = view.idle[holds], view.idle[~holds]
        places = self.participants if view.wanted is None else view.wanted
        wanted = max(ceil(round(self.least_fresh * places, 9)), places - len(late))
        lots = self.task.streams.stream("select", round=view.g).random(self.task.devices)[free]
        asked, stays = state.notes.get("asked", {}), self.staying(state)
        rests = [view.g - asked.get(str(k), -np.inf) <= self.rest_rounds for k in free.tolist()]
        order = np.lexsort((lots, stays[free] >= 0.5, rests))
        return np.sort(np.concatenate([late, free[order[:wanted]]]))

    def staying(self, state: State) -> Array:
        """Chance that a device is still there in the next round [K]: (stayed + 1) / (seen + 2)."""
        nothing = [0] * self.task.devices
        seen, stayed = (np.array(state.notes.get(name, nothing)) for name in ("seen", "stayed"))
        return (stayed + 1) / (seen + 2)

    def observe(self, state: State, report: Report) -> State:
        """Notes when each device was asked last."""
        now = {str(one.grant.device): report.g for one in report.outcomes}
        asked = state.notes.get("asked", {}) | now
        return replace(state, notes=state.notes | {"asked": asked})

    def _watched(self, state: State, view: View) -> dict[str, Any]:
        """How often each device was there, and how often still in the round after."""
        here = np.isin(np.arange(self.task.devices), view.idle).astype(int)
        before, seen, stayed = (
            np.array(state.notes.get(name, 0 * here)) for name in ("here", "seen", "stayed")
        )
        return {
            "here": here.tolist(),
            "seen": (seen + before).tolist(),
            "stayed": (stayed + before * here).tolist(),
        }

    # --- what it costs ---------------------------------------------------------------------------

    def demand(self, state: State | None, view: View, chosen: Array) -> Demand:
        """Who holds an update computes nothing and receives nothing."""
        demand = super().demand(state, view, chosen)
        trains = ~np.isin(chosen, list(state.local if state else ()))
        work = demand.work_prunable
        lighter = Work(work.weight_steps * trains, work.flops * trains)
        return replace(demand, work_prunable=lighter, bits_down=demand.bits_down * trains)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        if grant.device not in state.local:
            return super().configure(state, view, grant)
        held = Phase(state.local[grant.device], self.task.tensor(self.everything), 0, self.lr)
        payload = Payload(0.0, self.payload(0.0).bits_up)
        return Job(grant.device, view.g, (held,), (), payload, grant.rho)

    # --- what becomes of it ----------------------------------------------------------------------

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        """Everybody who trained holds its update until it arrives."""
        new = [update for update in updates if update.job.device not in state.local]
        held = {update.job.device: update.result().w - state.w for update in new}
        since = state.notes.get("since", {}) | {str(k): state.g for k in held}
        notes = state.notes | {"since": since}
        return replace(state, local=state.local | held, notes=notes)

    def recovered(self, saved: State, now: State) -> State:
        """A device that holds an update says of which round it is, also to a server that failed."""
        after = super().recovered(saved, now)
        return replace(after, notes=after.notes | {"since": now.notes.get("since", {})})

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean of fresh updates; with late ones, by their weights."""
        since = state.notes.get("since", {})
        arrived = {update.job.device for update in updates}
        fresh = [update for update in updates if since[str(update.job.device)] == state.g]
        late = [update.job.device for update in updates if since[str(update.job.device)] < state.g]
        after = super().aggregate(state, view, fresh)
        if late:
            w = self._with_late(state, view, [update.job.device for update in fresh], late)
            after = replace(after, w=w)
        left = {k: held for k, held in state.local.items() if k not in arrived}
        notes = {"since": {str(k): since[str(k)] for k in left}} | self._watched(state, view)
        return replace(after, local=left, notes=state.notes | notes)

    def _with_late(self, state: State, view: View, fresh: list[int], late: list[int]) -> Tensor:
        """w + the mean of fresh and late updates by their weights."""
        held = {k: state.local[k].double() for k in [*fresh, *late]}
        weights = {k: self.weight_of(view, k) for k in held}
        mean = sum(held[k] for k in fresh) / len(fresh) if fresh else None
        far = deviations(mean, len(fresh), [held[k] for k in late])
        for k, one in zip(late, far, strict=True):
            rounds = state.g - state.notes["since"][str(k)]
            weights[k] *= staleness_weight(rounds, one, self.beta, self.deviation_scale)
        moved = sum(weights[k] * held[k] for k in held) / sum(weights.values())
        return (state.w.double() + moved).to(state.w.dtype)

    def personalise(self, state: State, k: int) -> Tensor:
        return state.w

    def measures(self, state: State) -> dict[str, float]:
        return {"held updates": float(len(state.local))}


def staleness_weight(
    rounds: int, deviation: float, beta: float = 0.35, scale: float = 1.0
) -> float:
    """Weight of a late update, against 1 for a fresh one.

    w_s = (1 - beta) / (tau + 1) + beta (1 - exp(-Lambda / Lambda_max) / c).

    Args:
        rounds: tau, by which it is late.
        deviation: Lambda / Lambda_max, in [0, 1].
        beta: Share of the deviation.
        scale: c.
    """
    return (1.0 - beta) / (rounds + 1) + beta * (1.0 - exp(-deviation) / scale)


def deviation(mean: Values, fresh: int, late: Values) -> float:
    """How far a late update would move the mean of fresh ones.

    Lambda = |u - (late + n u) / (n + 1)|^2 / |u|^2.

    Args:
        mean: u, of the fresh updates [P].
        fresh: n, how many there are.
        late: The late update [P].
    """
    moved = mean - (late + fresh * mean) / (fresh + 1)
    size = float((mean * mean).sum())
    return float((moved * moved).sum()) / size if size > 0 else 0.0


def deviations(mean: Values | None, fresh: int, late: Sequence[Values]) -> list[float]:
    """Lambda / Lambda_max of late updates; 1 each without a fresh one, or if all agree."""
    each = [0.0 if mean is None else deviation(mean, fresh, one) for one in late]
    largest = max(each, default=0.0)
    return [one / largest if largest > 0 else 1.0 for one in each]

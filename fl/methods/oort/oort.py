"""Oort: guided selection of participants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isnan
from typing import Any, ClassVar

import numpy as np

from fl.contracts import Array, Grant, Job, Outcome, Payload, Report, Tensor, View
from fl.errors import MethodError
from fl.method_base.method import State, param
from fl.methods.fedavg import FedAvg
from fl.methods.oort import utility
from fl.models.layout import Slot
from fl.objective import Objective

PROGRAM = "FedScale, released program"


@dataclass(frozen=True, eq=False)
class Oort(FedAvg):
    """FedAvg that asks the devices whose samples are learned worst, if not slow, and some new ones.

    Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021. A
    tried device is worth its samples times the root of their mean squared loss, more if that was
    long ago, less if it takes longer than T; T is a percentile of all durations, which moves with
    what is gained (`fl.methods.oort.utility`).
    What travels: all weights, down and up; and up the mean squared loss, one number.

    Departs from the paper:
        Durations are those last seen. Who did not arrive, or could not begin, counts as tried: the
        round's duration, its worth as before or 0. A new device's prior is its number of samples
        alone: nothing is known of its speed.
        The cut-off is the paper's 0.95 (released program: 0.05); nobody is asked on top, and nobody
        barred.
    """

    source: ClassVar[str] = "Lai et al., OSDI 2021, Algorithm 1, and FedScale"
    stale: ClassVar[str] = "damp"
    participants: int | None = param(
        10, "devices asked per round", source="FedLPS, Section V", ge=1
    )
    cut_off: float = param(
        0.95,
        "share of the last chosen score from which on others may be drawn",
        source="Lai et al.",
        gt=0,
        le=1,
    )
    exploration: float = param(0.9, "share of new devices in round 0", source=PROGRAM, ge=0, le=1)
    exploration_decay: float = param(
        0.98, "its factor from round to round", source=PROGRAM, gt=0, le=1
    )
    least_exploration: float = param(
        0.3, "its least value", source=f"{PROGRAM}; Lai et al.: 0.2", ge=0, le=1
    )
    slow_power: float = param(
        2.0,
        "a device slower than T counts (T / t) to this power",
        source="Lai et al.",
        ge=0,
        le=100,
    )
    percentile: float = param(
        30.0, "of the durations, which is T; 100: no limit", source=PROGRAM, gt=0, le=100
    )
    pacer_rounds: int = param(
        20, "rounds after which the percentile may move", source=PROGRAM, ge=1
    )
    pacer_step: float = param(5.0, "by how much it moves", source=PROGRAM, ge=0, le=100)

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if values["participants"] is None:
            return MethodError(
                "participants", "is none, where Oort has nobody to choose from; write fedavg"
            )
        if values["least_exploration"] > values["exploration"]:
            return MethodError(
                "least_exploration",
                f"is {values['least_exploration']}; allowed is at most exploration "
                f"({values['exploration']})",
            )
        return super().conflict(values)

    # --- who -------------------------------------------------------------------------------------

    def select(self, state: State, view: View) -> Array:
        """Some of the tried devices by their worth, and some new ones by their samples."""
        assert self.participants is not None  # see conflict
        tried = tried_in(state)
        count = view.places(self.participants)
        if not tried or count == len(view.idle):
            return super().select(state, view)
        old = np.array([k for k in view.idle.tolist() if k in tried], dtype=int)
        new = np.setdiff1d(view.idle, old)
        # rounded up, as in the released program: the paper says nothing
        explored = min(len(new), ceil(round(count * self.share_of_new(view.g), 9)))
        exploited = min(len(old), count - explored)
        rng = self.task.streams.stream("oort", round=view.occasion)
        best = self._best(rng, state, view.g, old, exploited)
        unknown = self._unknown(rng, view, new, count - exploited)
        return np.sort(np.concatenate([best, unknown]))

    def share_of_new(self, g: int) -> float:
        return max(self.least_exploration, self.exploration * self.exploration_decay**g)

    def _best(
        self, rng: np.random.Generator, state: State, g: int, old: Array, count: int
    ) -> Array:
        if count == 0:
            return old[:0]
        tried = tried_in(state)
        durations = np.array([record[1] for record in tried.values()])
        limit_s = utility.limit(durations, state.notes["percentile"])
        gains, durations_s, last = np.array([tried[k] for k in old.tolist()]).T
        worth = utility.scores(gains, durations_s, last, g + 1, limit_s, self.slow_power)
        near = utility.shortlist(worth, count, self.cut_off)
        return old[near[utility.drawn(rng, worth[near], count)]]

    def _unknown(self, rng: np.random.Generator, view: View, new: Array, count: int) -> Array:
        """Of the five times as many with most samples, of equal ones any."""
        new = rng.permutation(new)
        likely = new[np.argsort(-view.samples[new], kind="stable")[: 5 * count]]
        return likely[utility.drawn(rng, view.samples[likely], count)]

    # --- what it learns --------------------------------------------------------------------------

    def observe(self, state: State, report: Report) -> State:
        """Notes utility, duration and round of each tried device, and what the round exploited."""
        tried = tried_in(state)
        gained = sum(tried.get(one.grant.device, (0.0,))[0] for one in report.outcomes)
        history = [*state.notes.get("exploited", []), gained][-2 * self.pacer_rounds :]
        percentile, now = state.notes.get("percentile", self.percentile), report.g + 1
        if now % self.pacer_rounds == 0 and len(history) == 2 * self.pacer_rounds:
            percentile = utility.paced(percentile, history, self.pacer_rounds, self.pacer_step)
        tried |= {one.grant.device: self._record(one, report, tried) for one in report.outcomes}
        notes = {
            "tried": {str(k): tried[k] for k in sorted(tried)},
            "exploited": history,
            "percentile": percentile,
        }
        return replace(state, notes=state.notes | notes)

    def _record(
        self, outcome: Outcome, report: Report, tried: dict[int, list[float]]
    ) -> list[float]:
        k = outcome.grant.device
        if not outcome.received or outcome.update is None:
            lasted_s = report.latency_s if isnan(outcome.finish_s) else outcome.finish_s
            return [tried.get(k, (0.0,))[0], lasted_s, report.g + 1]
        worth = utility.statistical(int(self.task.samples[k]), float(outcome.update.result().w[-1]))
        return [worth, outcome.finish_s, report.g + 1]

    # --- the number that it asks for -------------------------------------------------------------

    def extra(self) -> tuple[Slot, ...]:
        return (Slot("oort.mean_square", (1,), 0, "record", "record", -1),)

    def weights(self) -> dict[str, int]:
        size = self.task.layout.size
        return {"total": size, "global": size, "personal": 0}

    def payload(self, rho: float) -> Payload:
        both, bits = super().payload(rho), self.task.accounting
        return replace(both, bits_down=bits.weight_bits(self.task.layout.size))

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        job = super().configure(state, view, grant)
        squares = SquaredLosses(self.task.objective)
        (phase,) = job.phases
        watched = replace(phase, start=lambda done: squares.begin(phase.start), criterion=squares)
        return replace(job, phases=(watched,), finish=squares.finish)


def tried_in(state: State) -> dict[int, list[float]]:
    """Device -> utility, duration and round of its last participation."""
    return {int(k): record for k, record in state.notes.get("tried", {}).items()}


class SquaredLosses:
    """Loss of one job, whose last coordinate of w takes the mean squared sample loss."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def begin(self, start: Tensor) -> Tensor:
        """A job may run twice: the sum then begins anew."""
        self.total, self.samples = start.new_zeros(()), 0
        return start

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        import torch

        with torch.no_grad():
            self.total += self.objective.each(logits, y).square().sum()
        self.samples += len(y)
        return self.objective.mean(logits, y)

    def finish(self, done: list[Tensor]) -> Tensor:
        w = done[-1].clone()
        w[-1] = self.total / self.samples
        return w

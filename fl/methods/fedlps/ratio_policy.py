"""How many units a device keeps: its capability, one ratio for all, or its bandit's choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from fl.contracts import Outcome, Report, View
from fl.method_base.state import State
from fl.methods.fedlps.bandits import Arms, PUcbv
from fl.methods.fedlps.fedlps_parameters import FedLPSParameters
from fl.objective import label_hits


@dataclass(frozen=True, eq=False)
class RatioPolicy:
    """The share s of units that the server gives each device in each round.

    ``state.notes`` remembers per device its bandit's record and its next ratio, and of the last
    round the ratios that were executed. The server knows when an upload came and what accuracy it
    reports; of a late device that it did not wait for it only knows that it was late, which earns
    nothing, also where arriving with less accuracy would cost; one that failed teaches nothing.
    """

    settings: FedLPSParameters

    @cached_property
    def bandit(self) -> PUcbv:
        settings = self.settings
        assert settings.xi is not None  # with_length
        return PUcbv(
            partitions=settings.partitions,
            low=0.0 if settings.arm_space == "paper" else 0.5,
            high=1.0,
            rho=settings.bonus,
            drop=settings.drop,
            least_width=settings.least_width,
            xi=settings.xi,
            explore=settings.explore,
            utility_scale=settings.utility_scale,
            floor=settings.floor,
        )

    # --- which ratio -----------------------------------------------------------------------------

    def share(self, state: State | None, view: View, k: int) -> float:
        """The ratio s that device k executes in round view.g: at most what it can give."""
        settings = self.settings
        if settings.ratio == "fixed":
            assert settings.width is not None  # FedLPSParameters.conflict
            return settings.width
        most = min(float(view.capability[k]), self.share_within(float(view.model_budget[k])))
        return most if settings.ratio == "capability" else min(self.offered(state, k), most)

    def share_within(self, budget: float) -> float:
        """The largest ratio whose submodel has about that share of the parameters.

        A row of s J units has the share s of its weights; without their inputs it is about s^2.
        """
        return budget if self.settings.rows else sqrt(budget)

    def offered(self, state: State | None, k: int) -> float:
        """The ratio that the bandit of device k drew last; of a new device its first."""
        known = {} if state is None else state.notes.get("bandits", {})
        if str(k) in known:
            return known[str(k)]["next"]
        return self.bandit.begin(0.0, self._draws(k))[1]

    def _draws(self, k: int, g: int | None = None) -> np.random.Generator:
        return self.settings.task.streams.stream("bandit", device=k, round=g)

    # --- what a round teaches --------------------------------------------------------------------

    def observed(self, state: State, report: Report) -> State:
        """FedLPS, Algorithm 2: the bandits of this round's devices learn and draw."""
        executed = {
            str(one.grant.device): one.update.job.note for one in report.outcomes if one.update
        }
        state = replace(state, notes=state.notes | {"executed": executed})
        if self.settings.ratio != "p-ucbv":
            return state
        notes = self._timed(state.notes, report)
        tried = [one for one in report.outcomes if one.received or one.status == "late"]
        for one in tried:  # where jobs overlap, a device may have come twice
            learned = {str(one.grant.device): self._learned(notes, report, one)}
            notes = notes | {"bandits": notes.get("bandits", {}) | learned}
        return replace(state, notes=notes)

    def _timed(self, notes: dict[str, Any], report: Report) -> dict[str, Any]:
        """The notes with the time that counts as 1, as soon as it is known."""
        given = self.settings.time_scale
        times = [outcome.finish_s for outcome in report.outcomes if outcome.received]
        if "time_scale" in notes or (given is None and not times):
            return notes
        return notes | {"time_scale": float(np.mean(times)) if given is None else given}

    def _learned(self, notes: dict[str, Any], report: Report, outcome: Outcome) -> dict[str, Any]:
        """The record of a device's bandit after a round, and its next ratio."""
        k = outcome.grant.device
        known = notes.get("bandits", {}).get(str(k))
        if known:
            arms = Arms.from_record(known["arms"])
        else:
            arms = self.bandit.begin(self.first_accuracy(k), self._draws(k))[0]
        assert outcome.update is not None  # it was tried
        accuracy, seconds = arms.accuracy, report.latency_s
        if outcome.received:
            accuracy, seconds = outcome.update.result().accuracy, outcome.finish_s
        time = seconds / notes.get("time_scale", report.latency_s)
        ratio, draws = outcome.update.job.note, self._draws(k, report.g)
        arms, following = self.bandit.update(arms, ratio, accuracy, time, draws)
        return {"arms": arms.to_record(), "next": following}

    def first_accuracy(self, k: int) -> float:
        """Accuracy of the initial model on the training data of device k: U(a) of (15) at first."""
        import torch

        task = self.settings.task
        x, y = task.train
        mine = torch.from_numpy(task.data.train_index[k]).to(x.device)
        with torch.inference_mode():
            w = task.initial()
            found = [label_hits(task.architecture.logits(w, x[i]), y[i]) for i in mine.split(125)]
        return float(torch.cat(found).float().mean())

"""How large a device's submodel is: what it can give, one ratio for all, or what its bandit learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from fl.contracts import Outcome, Report, View
from fl.errors import MethodError
from fl.method_base.method import State, param
from fl.method_base.submodel_method import Submodels
from fl.methods.fedlps.bandits import EXPLORE, Arms, PUcbv

BANDIT_ONLY = (
    *(
        "partitions",
        "arm_space",
        "explore",
        "xi",
        "bonus",
        "drop",
        "least_width",
        "utility_scale",
        "floor",
    ),
    "time_scale",
)


@dataclass(frozen=True, eq=False)
class Ratios(Submodels):
    """Submodels whose share of kept units is a ratio s that the server decides per device and round.

    ``state.notes`` remembers per device its bandit's record and its next ratio, and of the last round the ratios that
    were executed. The server knows when an upload came and what accuracy it reports; of a device that was late it only
    knows that it was, which earns nothing, also where arriving with less accuracy would cost; one that failed teaches
    nothing.
    """

    ratio: str = param(
        "p-ucbv",
        "share of the units to keep: P-UCBV's, within capability and budget; the capability (RCR); fixed (FLST)",
        source="FedLPS, Algorithm 2, Table II",
        choices=("p-ucbv", "capability", "fixed"),
    )
    width: float | None = param(
        None,
        "share of the units that every device keeps where ratio is fixed",
        source="FedLPS, Table II: 0.5",
        gt=0,
        le=1,
    )
    partitions: int = param(
        5,
        "partitions of the arm space at first, I_0",
        source="FedLPS, released code",
        ge=1,
        le=1000,
    )
    arm_space: str = param(
        "paper",
        "ratios to choose from: [0, 1), or [0.5, 1) as in the released code, where only whole devices have a choice",
        source="FedLPS, Section IV",
        choices=("paper", "head"),
    )
    explore: str = param(
        "none",
        "try any partition with probability 1/m at the m-th participation, or never",
        source="FedLPS, Algorithm 2; 1/m in the released code",
        choices=EXPLORE,
    )
    xi: float = param(
        10.0,
        "xi of (17): rounds per selected device, R / (K epsilon)",
        source="FedLPS, eq. (17)",
        gt=0,
        le=1e6,
    )
    bonus: float = param(
        0.5, "rho of (17): weight of the uncertain", source="FedLPS, released code", ge=0, le=1e6
    )
    drop: float = param(
        -0.05,
        "change of accuracy, a fraction, below which lower ratios are dropped",
        source="fedlps.md, 5.2",
        le=0,
    )
    least_width: float = param(
        0.01, "no partition gets narrower", source="fedlps.md, 5.1", gt=0, le=1
    )
    utility_scale: float = param(
        1.0, "factor of the accuracy in U", source="fedlps.md, 5.4", gt=0, le=1e6
    )
    floor: float | None = param(
        None,
        "epsilon halves only while xi psi epsilon stays above this",
        source="fedlps.md, 5.3",
        gt=0,
        le=1e6,
    )
    time_scale: float | None = param(
        None,
        "time that counts as 1 in (15), seconds; none: mean finish time of the first round with an upload",
        source="our choice (fedlps.md, 5.1: the dense round time)",
        gt=0,
        le=1e9,
    )

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if values["ratio"] == "fixed" and values["width"] is None:
            return MethodError(
                "width",
                "is none, but ratio is fixed: give the share of the units that devices keep",
            )
        return super().conflict(values)

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        ratio = values["ratio"]
        fixed = {} if ratio == "fixed" else {"width": f"ratio is {ratio}"}
        return (
            super().unread(values)
            | fixed
            | ({} if ratio == "p-ucbv" else dict.fromkeys(BANDIT_ONLY, f"ratio is {ratio}"))
        )

    @cached_property
    def bandit(self) -> PUcbv:
        low = 0.0 if self.arm_space == "paper" else 0.5
        return PUcbv(
            self.partitions,
            low,
            1.0,
            self.bonus,
            self.drop,
            self.least_width,
            self.xi,
            self.explore,
            self.utility_scale,
            self.floor,
        )

    # --- which ratio -----------------------------------------------------------------------------------------------

    def share(self, state: State | None, view: View, k: int) -> float:
        """The ratio s that device k executes in round view.g: the server's, at most what the device can give."""
        if self.ratio == "fixed":
            return self.width
        most = min(float(view.capability[k]), self.share_within(float(view.model_budget[k])))
        return most if self.ratio == "capability" else min(self.offered(state, k), most)

    def share_within(self, budget: float) -> float:
        """The largest ratio whose submodel has at most that share of the parameters, about."""
        return sqrt(budget)

    def offered(self, state: State | None, k: int) -> float:
        """The ratio that the bandit of device k drew last; of a new device its first."""
        known = {} if state is None else state.notes.get("bandits", {})
        return (
            known[str(k)]["next"] if str(k) in known else self.bandit.begin(0.0, self._draws(k))[1]
        )

    def _draws(self, k: int, g: int | None = None) -> np.random.Generator:
        return self.task.streams.stream("bandit", device=k, round=g)

    # --- what a round teaches --------------------------------------------------------------------------------------

    def noted(self, state: State, view: View) -> dict[str, Any]:
        """The notes of a state after a round: which ratios were executed (for `aggregate`)."""
        return state.notes | {
            "executed": {str(k): self.share(state, view, int(k)) for k in self.select(state, view)}
        }

    def observe(self, state: State, report: Report) -> State:
        """FedLPS, Algorithm 2: the bandits of this round's devices learn and draw; the others keep their ratio."""
        state = super().observe(state, report)
        if self.ratio != "p-ucbv":
            return state
        notes = self._timed(state.notes, report)
        tried = [
            outcome for outcome in report.outcomes if outcome.received or outcome.status == "late"
        ]
        learned = {
            str(outcome.grant.device): self._learned(notes, report, outcome) for outcome in tried
        }
        return replace(state, notes=notes | {"bandits": notes.get("bandits", {}) | learned})

    def _timed(self, notes: dict[str, Any], report: Report) -> dict[str, Any]:
        """The notes with the time that counts as 1, as soon as it is known."""
        times = [outcome.finish_s for outcome in report.outcomes if outcome.received]
        if "time_scale" in notes or (self.time_scale is None and not times):
            return notes
        return notes | {
            "time_scale": float(np.mean(times)) if self.time_scale is None else self.time_scale
        }

    def _learned(self, notes: dict[str, Any], report: Report, outcome: Outcome) -> dict[str, Any]:
        """The record of a device's bandit after a round, and its next ratio."""
        k = outcome.grant.device
        known = notes.get("bandits", {}).get(str(k))
        arms = (
            Arms.from_record(known["arms"])
            if known
            else self.bandit.begin(self.first_accuracy(k), self._draws(k))[0]
        )
        accuracy = outcome.update.result().accuracy if outcome.received else arms.accuracy
        seconds = outcome.finish_s if outcome.received else report.latency_s
        time = seconds / notes.get("time_scale", report.latency_s)
        arms, ratio = self.bandit.update(
            arms, notes["executed"][str(k)], accuracy, time, self._draws(k, report.g)
        )
        return {"arms": arms.to_record(), "next": ratio}

    def first_accuracy(self, k: int) -> float:
        """Accuracy of the initial model on the training data of device k: U(a) of (15) before its first round."""
        import torch

        x, y = self.task.train
        mine = torch.from_numpy(self.task.data.train_index[k]).to(x.device)
        with torch.inference_mode():
            w = self.task.initial()
            hits = [
                (self.task.architecture.logits(w, x[i]).argmax(dim=1) == y[i]).float()
                for i in mine.split(125)
            ]
        return float(torch.cat(hits).mean())

    def measures(self, state: State) -> dict[str, float]:
        executed = list(state.notes.get("executed", {}).values())
        return super().measures(state) | (
            {"mean ratio": float(np.mean(executed))} if executed else {}
        )

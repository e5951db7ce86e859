"""FedMP: the method; its bandit is in `fl.methods.fedmp.e_ucb`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from fl.contracts import Array, Outcome, Report, Tensor, Update, View
from fl.masks.unit_masks import prefix, top, unit_sums
from fl.method_base.aggregation import mean_of_differences
from fl.method_base.method import State, param
from fl.methods._submodel_method import SubmodelMethod
from fl.methods.fedmp.e_ucb import EUcb, Record
from fl.models.layout import Layout

JIANG = "Jiang et al., ICDE 2022"
OURS = "our choice: Jiang et al. print none"
LEAST_DEVIATION = 0.05  # of the mean time, in the reward: a device at the mean would earn infinity


@lru_cache(maxsize=2)
def unit_norms(w: Tensor, layout: Layout) -> dict[str, Array]:
    """Sum of the absolute weights into each hidden unit; a model is never written to."""
    return unit_sums(layout, np.abs(w.detach().cpu().numpy()))


@dataclass(frozen=True, eq=False)
class FedMP(SubmodelMethod):
    """Structured pruning by magnitude; a bandit learns for every device which share it keeps.

    Jiang, Xu, Xu, Wang, Qiao, Zhao, "FedMP: Federated Learning through Adaptive Model Pruning in
    Heterogeneous Edge Computing", ICDE 2022. In every layer the floor(s J) units with the largest
    sum of absolute weights stay. The server adds to what a device returns the part that it had
    pruned, and takes the mean (R2SP); so a weight moves by the senders' share of its change. A
    device earns the fall of its training loss over the distance of its time from the mean time.
    What travels: the submodel's weights, down and up.

    Departs from the paper:
        The first participation of a device earns nothing, since no loss stands before it; nor does
        one that was late where the server does not wait.
        A distance below 5 % of the mean time counts as 5 %.
        Neither capability nor model budget bound a ratio: the bandit learns from the times.
        A leaf is divided where both parts have ``least_width``, and passes its plays on by width.
        Rewards are losses per second and are not scaled: beside those of short rounds the bound
        vanishes, and where they are small the bandit hardly prefers anything. With the default
        ``exploration`` 1, where the lower half of the ratios earns 1 and the upper 0, 67 % of 200
        plays are in the lower half; with 0.1 it is 94 %.
        Devices use the whole model.
    """

    source: ClassVar[str] = JIANG
    stale: ClassVar[str] = "damp"
    width: float | None = param(
        None,
        "share of the units that every device keeps; none: what its bandit draws",
        source=JIANG,
        gt=0,
        le=1,
    )
    least_share: float = param(
        0.2, "least share of units that the bandit may keep", source=OURS, gt=0, le=0.99
    )
    discount: float = param(0.95, "factor of older rewards, lambda", source=OURS, gt=0, le=0.9999)
    least_width: float = param(
        0.05, "leaves of the bandit are not divided below this width", source=OURS, gt=0, le=1
    )
    exploration: float = param(
        1.0, "weight of the bandit's confidence bound", source=JIANG, ge=0, le=100
    )

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        fixed = values["width"] is not None
        idle = ("least_share", "discount", "least_width", "exploration") if fixed else ()
        return super().unread(values) | dict.fromkeys(idle, "width is given")

    # --- which units -----------------------------------------------------------------------------

    @cached_property
    def bandit(self) -> EUcb:
        return EUcb(self.least_share, 1.0, self.discount, self.least_width, self.exploration)

    def share(self, state: State | None, k: int) -> float:
        """The share of units of device k: ``width``, or what its bandit drew last."""
        if self.width is not None:
            return self.width
        known = None if state is None else state.notes.get("bandits", {}).get(str(k))
        return known["next"] if known else self.bandit.draw(self.bandit.begin(), self._draws(k))

    def _draws(self, k: int, g: int | None = None) -> np.random.Generator:
        return self.task.streams.stream("fedmp", device=k, round=g)

    def kept(self, state: State | None, view: View, k: int) -> Array:
        share = self.share(state, k)
        if state is None:  # as many units, which costs the same; which ones the weights decide
            return self.layout.expand(prefix(self.layout, share))
        return self.layout.expand(top(self.layout, unit_norms(state.w, self.layout), share))

    def noted(self, state: State, view: View, k: int) -> float:
        """The share that the bandit drew."""
        return self.share(state, k)

    # --- what becomes of it ----------------------------------------------------------------------

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        w = mean_of_differences(state.w, *self.arrived(view, updates))
        return replace(state, g=state.g + 1, w=w)

    def observe(self, state: State, report: Report) -> State:
        if self.width is not None:
            return state
        back = [one for one in report.outcomes if one.received and one.update is not None]
        if not back:
            return state
        mean_s = float(np.mean([one.finish_s for one in back]))
        known = state.notes.get("bandits", {})
        for one in back:  # where jobs overlap, a device may have come twice
            known = known | {str(one.grant.device): self._learned(known, one, mean_s, report.g)}
        return replace(state, notes=state.notes | {"bandits": known})

    def _learned(
        self, known: dict[str, Any], one: Outcome, mean_s: float, g: int
    ) -> dict[str, Any]:
        """The record of a device's bandit after a round, its next ratio and its loss."""
        k = one.grant.device
        before = known.get(str(k))
        record: Record = before["leaves"] if before else self.bandit.begin()
        assert one.update is not None  # see observe
        loss = one.update.result().loss
        if before and np.isfinite(loss) and np.isfinite(before["loss"]):
            away_s = max(abs(one.finish_s - mean_s), LEAST_DEVIATION * mean_s)
            reward = (before["loss"] - loss) / away_s
            record = self.bandit.learn(record, one.update.job.note, reward)
        following = self.bandit.draw(record, self._draws(k, g))
        return {"leaves": record, "next": following, "loss": loss}

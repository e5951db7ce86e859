"""FjORD: ordered dropout, with a width drawn per batch or per round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from fl.contracts import Array, Phase, Stage, Tensor, Update, View, Work
from fl.data.samples import IGNORED
from fl.errors import MethodError
from fl.method_base.affine_demand import total_work
from fl.method_base.method import State, param
from fl.methods._ordered_dropout import (
    DeployedSubmodels,
    deploy_parameter,
    first_units,
    width_of,
    width_parameter,
)
from fl.methods._submodel_method import SubmodelMethod
from fl.methods.fedavg import weighting_by_samples


@dataclass(frozen=True, eq=False)
class Fjord(SubmodelMethod):
    """Ordered dropout: nested submodels whose width is drawn anew, up to the device's own.

    Horvath et al., "FjORD: Fair and Accurate Federated Learning under Heterogeneous Targets with
    Ordered Dropout", NeurIPS 2021. What travels: the largest submodel that the device may draw
    (``resample: batch``), or the one drawn (``round``), down and up. The mean over holders is the
    paper's mean block by block, since the submodels are nested.

    Departs from the paper:
        No normalisation layers of their own per width.
        The optimiser starts anew in every batch, so that ``momentum`` goes with ``resample: round``
        alone (the authors use none).
    """

    source: ClassVar[str] = "Horvath et al., NeurIPS 2021, Algorithm 1"
    stale: ClassVar[str] = "damp"
    width: float | None = width_parameter()
    deploy: str = deploy_parameter()
    levels: tuple[float, ...] = param(
        (0.0625, 0.125, 0.25, 0.5, 1.0),
        "widths that can be drawn",
        source="our choice: the levels of FedLPS, Section V; the authors: 0.2, 0.4, .. 1",
        gt=0,
        le=1,
    )
    low: float | None = param(
        None,
        "draw any width from low to the device's own instead of one of the levels",
        source="Kim et al., NeurIPS 2024 (SpaFL), Section 5: 0.4",
        gt=0,
        le=1,
    )
    resample: str = param(
        "batch",
        "when a width is drawn",
        source="Horvath et al., Algorithm 1",
        choices=("batch", "round"),
    )
    distillation: bool = param(
        False,
        "each batch also learns from the outputs of the largest width",
        source="Horvath et al.: optional",
    )
    weighting: str = weighting_by_samples("Horvath et al., Algorithm 1")

    @classmethod
    def conflict(cls, values: dict[str, Any]) -> MethodError | None:
        if values["momentum"] and values["resample"] == "batch":
            problem = "but with resample: batch the optimiser starts anew in every batch; remove it"
            return MethodError("momentum", f"is {values['momentum']}, {problem}")
        return super().conflict(values)

    @classmethod
    def unread(cls, values: dict[str, Any]) -> dict[str, str]:
        drawn = {} if values["low"] is None else {"levels": "low is given"}
        once = {} if values["resample"] == "batch" else {"distillation": "resample is round"}
        return super().unread(values) | drawn | once

    def own_loss(self) -> str | None:
        return "distills by cross entropy" if self.distillation else None

    def largest(self, view: View, k: int) -> float:
        """The largest width that device k may draw.

        With distillation its own width teaches, drawn or not.
        """
        own = width_of(self.width, view, k)
        if self.low is not None or self.distillation:
            return own
        return max((level for level in self.levels if level <= own), default=own)

    def drawn(self, view: View, k: int) -> list[float]:
        """The widths that device k draws in this round: one per step, or one."""
        largest = width_of(self.width, view, k)
        count = self.steps(k) if self.resample == "batch" else 1
        lots = self.task.streams.stream("fjord", device=k, round=view.g).random(count)
        if self.low is not None:
            low = min(self.low, largest)
            return (low + (largest - low) * lots).tolist()
        allowed = [level for level in sorted(self.levels) if level <= largest] or [largest]
        return [allowed[int(lot * len(allowed))] for lot in lots]

    def kept(self, state: State | None, view: View, k: int) -> Array:
        drawn = self.resample == "round"
        width = self.drawn(view, k)[0] if drawn else self.largest(view, k)
        return first_units(self.layout, width)

    def submodel_stages(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """The mean of the drawn widths; with distillation also the largest one in every step."""
        of_submodel = super().submodel_stages
        if self.resample == "round":
            return of_submodel(view, k, kept)
        widths = self.drawn(view, k)
        each = {s: of_submodel(view, k, first_units(self.layout, s)) for s in set(widths)}
        stages = [stage for width in widths for stage in each[width]]
        if self.distillation:
            stages += of_submodel(view, k, kept) * len(widths)
        total = total_work(stages)
        return (Stage("train", Work(total.weight_steps / len(widths), total.flops / len(widths))),)

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        if self.resample == "round":
            return super().phases(state, view, k, w, kept)
        mask = self.task.tensor(kept)
        widths = self.drawn(view, k)
        submodels = {s: self.task.tensor(first_units(self.layout, s)) for s in set(widths)}
        if not self.distillation:
            per_step = tuple(submodels[width] for width in widths)
            return (self.training(w, mask, view.g, k, submodel=per_step),)
        start = [w] + [last] * (len(widths) - 1)
        losses = [self._distilling(mask, submodels[width]) for width in widths]
        return tuple(
            self.training(start[i], mask, view.g, k, steps=1, first=i, loss=loss)
            for i, loss in enumerate(losses)
        )

    def _distilling(
        self, largest: Tensor, drawn: Tensor
    ) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The largest width learns the labels, the drawn one the outputs of the largest."""

        def loss(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            from torch.nn.functional import cross_entropy

            teacher = self.task.architecture.logits(w * largest, x)
            student = self.task.architecture.logits(w * drawn, x)
            chances = teacher.detach().softmax(dim=1)
            if y.dim() == 1:
                taught = cross_entropy(student, chances)
            else:  # of texts the mean over the steps with a label, as of the labels
                taught = cross_entropy(student, chances, reduction="none")[y != IGNORED].mean()
            plain = cross_entropy(teacher, y)
            return plain + taught, plain

        return loss

    # --- what is used ----------------------------------------------------------------------------

    @cached_property
    def deployed(self) -> DeployedSubmodels:
        return DeployedSubmodels(self.task, self.width, self.deploy)

    def noted(self, state: State, view: View, k: int) -> float:
        """The width of the device."""
        return width_of(self.width, view, k)

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """The mean over holders; and the server notes the width of every device."""
        after = super().aggregate(state, view, updates)
        return self.deployed.with_widths(after, view, updates)

    def received(self, state: State, k: int) -> Tensor:
        return state.w

    def personalise(self, state: State, k: int) -> Tensor:
        return self.deployed.of_device(state, k)

    def probes(self, state: State) -> dict[str, Tensor]:
        return self.deployed.by_width(state)


def last(done: list[Tensor]) -> Tensor:
    """Where the phase before ended."""
    return done[-1]

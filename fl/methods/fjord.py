"""FjORD. Horvath et al., "FjORD: Fair and Accurate FL ... with Ordered Dropout", NeurIPS 2021."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fl.contracts import Phase, Stage, Tensor, View, Work
from fl.masks.ordered_dropout import Nested
from fl.method_base.averaging import by_samples
from fl.method_base.costs import total_work
from fl.method_base.method import State, param

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Fjord(Nested):
    """Ordered dropout: nested submodels whose width is drawn anew, per batch or per round, up to the device's own.

    What travels: the largest submodel that the device may draw (``resample: batch``), or the one drawn (``round``),
    down and up. The mean over holders is the paper's mean block by block, since the submodels are nested.

    Departs from the paper:
        No normalisation layers of their own per width.
        The optimiser starts anew in every batch (the authors use no momentum).
    """

    source: ClassVar[str] = "Horvath et al., NeurIPS 2021, Algorithm 1"
    levels: tuple[float, ...] = param(
        (0.0625, 0.125, 0.25, 0.5, 1.0),
        "widths that can be drawn",
        source="fedlps.md, 10.8",
        gt=0,
        le=1,
    )
    low: float | None = param(
        None,
        "draw any width from low to the device's own instead of one of the levels",
        source="spafl.md, 10",
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
    weighting: str = by_samples("Horvath et al., Algorithm 1")

    @classmethod
    def unread(cls, values: dict) -> dict[str, str]:
        drawn = {} if values["low"] is None else {"levels": "low is given"}
        once = {} if values["resample"] == "batch" else {"distillation": "resample is round"}
        return super().unread(values) | drawn | once

    def largest(self, view: View, k: int) -> float:
        """The largest width that device k may draw; with distillation its own one teaches, drawn or not."""
        own = self.width_of(view, k)
        if self.low is not None or self.distillation:
            return own
        return max((level for level in self.levels if level <= own), default=own)

    def drawn(self, view: View, k: int) -> list[float]:
        """The widths that device k draws in this round: one per step, or one."""
        largest, count = self.width_of(view, k), self.steps(k) if self.resample == "batch" else 1
        lots = self.task.streams.stream("fjord", device=k, round=view.g).random(count)
        if self.low is not None:
            low = min(self.low, largest)
            return (low + (largest - low) * lots).tolist()
        allowed = [level for level in sorted(self.levels) if level <= largest] or [largest]
        return [allowed[int(lot * len(allowed))] for lot in lots]

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.nested(
            self.drawn(view, k)[0] if self.resample == "round" else self.largest(view, k)
        )

    def ordered(self, view: View, k: int, kept: Array) -> tuple[Stage, ...]:
        """The mean of the drawn widths; with distillation also the largest one in every step."""
        if self.resample == "round":
            return super().ordered(view, k, kept)
        widths = self.drawn(view, k)
        each = {
            width: super(Fjord, self).ordered(view, k, self.nested(width)) for width in set(widths)
        }
        stages = [stage for width in widths for stage in each[width]]
        if self.distillation:
            stages += super().ordered(view, k, kept) * len(widths)
        total = total_work(stages)
        return (Stage("train", Work(total.weight_steps / len(widths), total.flops / len(widths))),)

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        if self.resample == "round":
            return super().phases(state, view, k, w, kept)
        mask = self.task.tensor(kept)
        widths = self.drawn(view, k)
        submodels = {width: self.task.tensor(self.nested(width)) for width in set(widths)}
        if not self.distillation:
            return (
                self.training(
                    w, mask, view.g, k, submodel=tuple(submodels[width] for width in widths)
                ),
            )
        start = [w] + [last] * (len(widths) - 1)
        losses = [self._distilling(mask, submodels[width]) for width in widths]
        return tuple(
            self.training(start[i], mask, view.g, k, steps=1, first=i, loss=loss)
            for i, loss in enumerate(losses)
        )

    def _distilling(
        self, largest: Tensor, drawn: Tensor
    ) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        """Cross entropy of the largest width with the labels, and of the drawn one with the largest one's outputs."""

        def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
            from torch.nn.functional import cross_entropy

            teacher = self.task.architecture.logits(w * largest, x)
            student = self.task.architecture.logits(w * drawn, x)
            return cross_entropy(teacher, y) + cross_entropy(
                student, teacher.detach().softmax(dim=1)
            )

        return loss


def last(done: list[Tensor]) -> Tensor:
    """Where the phase before ended."""
    return done[-1]

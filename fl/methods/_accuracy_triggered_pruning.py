"""Base of methods whose devices prune their own models once these are accurate enough."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from fl.accounting import forward_flops
from fl.contracts import Array, Payload, Stage, Tensor, Update, View, Work
from fl.method_base.affine_demand import upload_bits
from fl.method_base.method import PRUNING, State, param
from fl.methods._submodel_method import SubmodelMethod
from fl.objective import label_hits

OURS = "our choice: it differs by data set"


@dataclass(frozen=True, eq=False)
class AccuracyTriggeredPruning(SubmodelMethod):
    """Every device has a mask of its own; a subclass says how it is tightened (`tightened`).

    A device that is asked tests the model that it receives on the samples that it holds out
    (``learning.validation``), and without any on those that it trains with. If it is accurate
    enough, and more than ``least_rate`` of the weights are left, it tightens its mask before it
    trains.
    """

    reads: ClassVar[tuple[str, ...]] = PRUNING
    accuracy_to_prune: float = param(
        0.5, "accuracy from which on a device prunes; 2: never", source=OURS, ge=0, le=2
    )
    prune_share: float = param(0.1, "share that is pruned at a time", source=OURS, gt=0, le=0.9)
    least_rate: float = param(
        0.5, "share of the weights at which nothing more is pruned", source=OURS, ge=0, le=1
    )

    def own_loss(self) -> str | None:
        return "prunes by the accuracy of its models"

    # --- masks -----------------------------------------------------------------------------------

    @abstractmethod
    def own_mask(self, state: State, k: int) -> Tensor | None:
        """The mask bool [P] with which device k trained last; None: it has none yet."""

    @abstractmethod
    def tightened(self, mask: Array, w: Array) -> Array:
        """What remains of a mask bool [P] without the smallest parts of the model w [P]."""

    def kept_share(self, mask: Array) -> float:
        """Share of the weights that a mask bool [P] keeps."""
        return float(mask[self.weight_places].mean())

    def held(self, state: State | None, k: int) -> Array:
        """The mask bool [P] of device k before it is asked."""
        mask = None if state is None else self.own_mask(state, k)
        return self.everything if mask is None else mask.cpu().numpy()

    def kept(self, state: State | None, view: View, k: int) -> Array:
        return self.everything if state is None else decisions(self, state)(k)

    def decided(self, state: State, k: int) -> Array:
        """The mask bool [P] with which device k trains."""
        mask, w = self.held(state, k), self.received(state, k)
        if self.kept_share(mask) <= self.least_rate or self.accuracy(k, w) < self.accuracy_to_prune:
            return mask
        return self.tightened(mask, w.cpu().numpy())

    def tested_samples(self, k: int) -> Array:
        """Numbers of the training samples on which device k tests a model."""
        data = self.task.data
        held_out = data.validation_index[k] if len(data.validation_index) else ()
        return np.asarray(held_out if len(held_out) else data.train_index[k])

    def accuracy(self, k: int, w: Tensor) -> float:
        """Accuracy of a model w [P] on the `tested_samples` of device k."""
        import torch

        from fl.worker_threads import one_torch_thread

        images, labels = self.task.train
        index = self.task.tensor(self.tested_samples(k))
        with torch.no_grad(), one_torch_thread():
            logits = self.task.architecture.logits(w, images[index])
        return float(label_hits(logits, labels[index]).double().mean())

    # --- what it costs ---------------------------------------------------------------------------

    def costs(
        self, state: State | None, view: View, k: int, kept: Array
    ) -> tuple[tuple[Stage, ...], Payload]:
        """The test and the steps; down what the device held, up what it keeps and a new mask."""
        task, held = self.task, self.held(state, k)
        forward = forward_flops(task.architecture, task.accounting, held)
        probe = Stage("probe", Work(0.0, forward * len(self.tested_samples(k))))
        bits_up = upload_bits(self.submodel_payload(kept))
        if not np.array_equal(held, kept):
            bits_up += self.mask_bits(kept)
        down = self.submodel_payload(held).bits_down
        return (probe, *self.kept_stages(k, kept)), Payload(down, bits_up)

    def mask_bits(self, kept: Array) -> float:
        """Bits of a new mask ``kept`` bool [P]; nothing where few numbers name whole units."""
        return 0.0

    # --- what stays ------------------------------------------------------------------------------

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        return self.with_local_parts(state, updates)

    def measures(self, state: State) -> dict[str, float]:
        """Mean share of the weights that devices keep."""
        shares = [self.kept_share(self.held(state, k)) for k in range(self.task.devices)]
        return {"kept_weights": float(np.mean(shares))}


@lru_cache(maxsize=1)
def decisions(method: AccuracyTriggeredPruning, state: State) -> Callable[[int], Array]:
    """The masks that devices decide on in a round: asked for when it is planned and ordered."""
    return lru_cache(maxsize=None)(partial(method.decided, state))

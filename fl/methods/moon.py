"""MOON: features of a device are held near those of the global model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import ClassVar

from fl.accounting import forward_flops
from fl.contracts import Grant, Phase, Stage, Tensor, Trained, Update, Work
from fl.errors import ModelError
from fl.method_base.method import MAX_RATE, State, param
from fl.methods.fedavg import FedAvg
from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu

LI = "Li, He, Song, CVPR 2021"
PROJECTION = 256  # features that are compared, in the released program


@dataclass(frozen=True, eq=False)
class MOON(FedAvg):
    """FedAvg with a contrastive term: features near the global model's, far from the old ones.

    Li, He, Song, "Model-Contrastive Federated Learning", CVPR 2021. The loss is cross entropy +
    mu l with l = -log(e^(cos(z, z_g) / T) / (e^(cos(z, z_g) / T) + e^(cos(z, z_prev) / T))): z are
    the features of a sample in front of the output layer, z_g those of the received model, z_prev
    those of the model that the device trained last. Two dense layers, the projection head, are put
    in front of the output layer; its 256 outputs are z.
    What travels: all weights, down and up. The model that a device trained last stays there, also
    when the upload was late.

    Departs from the paper:
        A device that is asked for the first time has the received model as its previous one, so
        that l = log 2 without a gradient.
        The mean is uniform as in Liu, eq. (11); ``weighting: samples`` is the paper's.
        With batch norm all three models see the statistics of the batch.
    """

    source: ClassVar[str] = f"{LI}, Algorithm 1"
    stale: ClassVar[str] = "damp"
    cost_by_samples: ClassVar[bool] = True
    mu: float = param(1.0, "weight of the contrastive term", source=LI, ge=0, le=MAX_RATE)
    temperature: float = param(0.5, "temperature T", source=LI, gt=0, le=MAX_RATE)

    @classmethod
    def architecture(cls, given: Architecture) -> Architecture:
        """With the projection head.

        Raises:
            ModelError: The model does not end in a dense layer of this package.
        """
        last = given.layers[-1] if given.in_layers else None
        if not isinstance(last, Linear):
            lacks = "does not end in a dense layer"
            lacks = lacks if given.in_layers else "is a module of your own"
            raise ModelError(
                f"moon puts a projection head in front of the output layer, and model {given.name} "
                f"{lacks}; choose another model or method"
            )
        width = prod(given.input_shapes[-1])
        head = Linear(width, width), Relu(), Linear(width, PROJECTION)
        output = replace(last, inputs=PROJECTION)
        return replace(given, layers=(*given.layers[:-1], *head, output))

    def own_loss(self) -> str | None:
        return "adds its contrastive term to cross entropy"

    @cached_property
    def encoder(self) -> Architecture:
        """R of the paper, the network in front of the output layer; it computes z."""
        whole = self.task.architecture
        return replace(whole, layers=whole.layers[:-1])

    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """The steps, and for each sample the features of two more models."""
        (train,) = super().stages(k, rho)
        if self.mu == 0:
            return (train,)
        passes = 2 * self.steps(k) * self.samples_per_step(k)
        flops = passes * forward_flops(self.encoder, self.task.accounting)
        return train, Stage("contrast", Work(0.0, flops))

    def local_update(self, state: State, k: int, w: Tensor, grant: Grant) -> tuple[Phase, ...]:
        if self.mu == 0:
            return super().local_update(state, k, w, grant)
        architecture, encoder = self.task.architecture, self.encoder
        previous = state.local.get(k, w)

        def loss(v: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            import torch
            from torch.nn.functional import cross_entropy

            z, logits = architecture.features(architecture.layout.split(v), x)
            with torch.no_grad():
                near, far = encoder.logits(w, x), encoder.logits(previous, x)
            plain = cross_entropy(logits, y)
            return plain + self.mu * contrast(z, near, far, self.temperature), plain

        return (self.training(w, self._all, state.g, k, loss=loss),)

    # --- what stays, and what is used ------------------------------------------------------------

    def local_part(self, trained: Trained) -> Tensor:
        """The model that the device trained."""
        return trained.w

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        return state if self.mu == 0 else self.with_local_parts(state, updates)

    def personalise(self, state: State, k: int) -> Tensor:
        return state.w


def contrast(z: Tensor, near: Tensor, far: Tensor, temperature: float) -> Tensor:
    """Mean over samples of -log(e^(a / T) / (e^(a / T) + e^(b / T))): Li et al., eq. (3).

    Args:
        z: Features [B, D].
        near: To which a is the cosine [B, D].
        far: To which b is the cosine [B, D].
        temperature: T.
    """
    from torch.nn.functional import cosine_similarity, softplus

    closer = cosine_similarity(z, near) - cosine_similarity(z, far)
    return softplus(-closer / temperature).mean()

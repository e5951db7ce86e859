"""FedP3: every device owns some of the layers, and gets the others pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from fl.contracts import Array, Job, Payload, Phase, Sent, Stage, Tensor, Trained, Update, View
from fl.errors import MethodError
from fl.masks.unit_masks import kept_count, largest, output_layer
from fl.method_base.method import State, param
from fl.methods._submodel_method import SubmodelMethod
from fl.models.layout import Slot

YI = "Yi et al., ICLR 2024"


@dataclass(frozen=True, eq=False)
class FedP3(SubmodelMethod):
    """A device receives its own layers whole and the others pruned, and returns its own alone.

    Yi, Gazagnadou, Richtarik, Lyu, "FedP3: Federated Personalized and Privacy-friendly Network
    Pruning under Model Heterogeneity", ICLR 2024. The layers without the last form a ring; devices
    in as many groups own ``layers`` consecutive ones, group g from layer g on (OPU2, OPU3). Of the
    other layers a device receives the share ``kept_share`` of the largest weights. It trains all;
    the last layer, the head, is its own, and goes to the server all the same.
    What travels: down its layers, what is left of the others, no head; up its layers and the head.
    Each layer is averaged over the devices that own it. What a device trained stays there, also
    when the upload was late.

    Departs from the paper:
        There are as many groups as layers, where the authors have four of both; so all layers have
        equally many owners where devices divide evenly; with fewer devices a layer may have none.
        Norms belong to the layer in front of them. Biases and norms are never pruned.
        Devices do not prune what they compute, as in the released program; the paper offers it.
        A device uses what it trained, and the server's weights in its own layers; one that was
        never asked uses the server's weights behind the initial head.
        Which weights are left of the others is charged by accounting.mask_overhead.
    """

    source: ClassVar[str] = f"{YI}, Algorithm 1 (OPU), and released program"
    stale: ClassVar[str] = "damp"
    reads: ClassVar[tuple[str, ...]] = ("mask_overhead",)
    layers: int = param(2, "layers that a device owns", source=f"{YI}: OPU2", ge=1)
    kept_share: float = param(
        0.9, "share of the weights that others' layers keep on the way down", source=YI, gt=0, le=1
    )

    def __post_init__(self) -> None:
        if not self.ring:
            raise MethodError("name", "needs a model with a layer in front of the output layer")

    # --- who owns what ---------------------------------------------------------------------------

    @cached_property
    def head(self) -> Array:
        """The output layer, bool [P]."""
        return output_layer(self.layout)

    @cached_property
    def ring(self) -> tuple[tuple[Slot, ...], ...]:
        """The tensors of every layer but the head; a norm belongs to the layer before it."""
        found: list[list[Slot]] = []
        begun = None
        for slot in self.layout.slots:
            if self.head[slot.offset]:
                continue
            if begun is None or (slot.layer != begun and slot.kind != "norm"):
                found.append([])
                begun = slot.layer
            found[-1].append(slot)
        return tuple(map(tuple, found))

    def owned(self, k: int) -> Array:
        """The weights of the layers that device k owns, without the head, bool [P]."""
        count = len(self.ring)
        first = k * count // self.task.devices
        mine = {(first + i) % count for i in range(self.layers)}
        slots = {slot.name for number in mine for slot in self.ring[number]}
        return self.layout.where(lambda slot: slot.name in slots)

    def kept(self, state: State | None, view: View, k: int) -> Array:
        """What device k returns: its layers and the head."""
        return self.owned(k) | self.head

    # --- what it costs ---------------------------------------------------------------------------

    def pruned_share(self, kept: Array) -> float:
        return 0.0

    def costs(
        self, state: State | None, view: View, k: int, kept: Array
    ) -> tuple[tuple[Stage, ...], Payload]:
        """Steps on the whole model; see the class for what travels."""
        accounting = self.task.accounting
        whole = int((kept & ~self.head).sum())
        parts = pruned = places = 0
        for slot in self._prunable:
            if kept[slot.offset]:
                continue
            left = kept_count(1.0 - self.kept_share, slot.size)
            parts, pruned, places = parts + left, pruned + slot.size - left, places + slot.size
        rest = int((~kept & ~self.weight_places).sum())
        down = accounting.weight_bits(whole + parts + rest)
        down += accounting.mask_bits(places, pruned / places) if places else 0.0
        payload = Payload(down, accounting.weight_bits(int(kept.sum())))
        return self.stages(k, 0.0), payload

    @cached_property
    def _prunable(self) -> tuple[Slot, ...]:
        """The tensors that are pruned where others own them."""
        pruned = self.weight_places & ~self.head
        return tuple(slot for slot in self.layout.slots if pruned[slot.offset])

    # --- how a device trains ---------------------------------------------------------------------

    def phases(self, state: State, view: View, k: int, w: Tensor, kept: Array) -> tuple[Phase, ...]:
        return (self.training(w, self._all, view.g, k),)

    def received(self, state: State, k: int) -> Tensor:
        """[own layers | the largest weights of the others | its own head, at first the initial]."""
        import torch

        owned = self.owned(k)
        w = self._with_initial_head(state)
        for slot in self._prunable:
            if self.kept_share < 1 and not owned[slot.offset]:
                part = w[slot.slice]
                among = torch.ones_like(part, dtype=torch.bool)
                count = kept_count(1.0 - self.kept_share, slot.size)
                part[~largest(part.abs(), among, count)] = 0.0
        own = state.local.get(k)
        return w if own is None else own.where(self.task.tensor(self.head), w)

    def _with_initial_head(self, state: State) -> Tensor:
        """The server's weights [P] but for the head, of which no mean goes down."""
        return self._initial.where(self.task.tensor(self.head), state.w)

    @cached_property
    def _initial(self) -> Tensor:
        return self.task.initial()

    # --- what returns, and what is used ----------------------------------------------------------

    def encode(self, job: Job, trained: Trained) -> Sent:
        return Sent(trained.w, self.task.tensor(self.owned(job.device) | self.head))

    def local_part(self, trained: Trained) -> Tensor:
        return trained.w

    def retain(self, state: State, updates: Sequence[Update]) -> State:
        return self.with_local_parts(state, updates)

    def personalise(self, state: State, k: int) -> Tensor:
        """What it trained, and in its own layers the server's weights."""
        own = state.local.get(k)
        if own is None:
            return self._with_initial_head(state)
        return state.w.where(self.task.tensor(self.owned(k)), own)

    def probes(self, state: State) -> dict[str, Tensor]:
        return {"global": state.w}

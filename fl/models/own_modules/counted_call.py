"""A call of a torch module whose multiply-adds are counted for each of its parameters.

What is counted inside of a module, but in none of its children, is divided among the module's own
weights by their sizes; a module without weights of its own divides it among those below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fl.models.batch_norm import StaticBatchNorm
from fl.models.own_modules.operation_flops import flop_counter

BATCH = 2  # samples that are traced
SCALES = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._NormBase)
LOOKED_UP = (nn.Embedding, nn.EmbeddingBag)
SIMPLE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
ROWS = (*SIMPLE, nn.MultiheadAttention)  # every row of their weights feeds one output


@dataclass(frozen=True)
class TracedParameter:
    """One parameter of a module.

    Args:
        name: as in ``named_parameters``.
        shape: its dimensions.
        kind: weight | bias | norm | embedding (`fl.models.layout.Slot`).
        owner: name of the module whose call uses it.
        place: twice that of the owner in the order in which modules are first called, of several
            owners the first; of a parameter beside modules one less than of the first that it
            changes the input of.
        uses: how often a forward pass of one sample multiplies by, or adds, each coordinate.
        rows: each of its rows feeds one output.
        reached: the outputs depend on it, so that a backward pass comes to it.
        factors: of its uses (`fl.models.layers.layer.LayerTensor`).
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    owner: str
    place: int
    uses: float
    rows: bool
    reached: bool
    factors: tuple[tuple[float, int], ...] | None


class CountedCall:
    """Calls a module and counts what each of its modules does."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.names = {each: name for name, each in module.named_modules()}
        # multiply-adds of one sample, the parameters that the two factors depend on, and the result
        self.products = {
            name: list[tuple[float, tuple[int, int], Any]]() for name in self.names.values()
        }
        self.place: dict[str, int] = {}

    def __call__(self, x: Tensor) -> Any:
        calling = [""]

        def charge() -> None:
            made = zip(counter.products, counter.results, strict=True)
            self.products[calling[-1]] += (
                (flops / (2 * BATCH), factors, result) for (flops, factors), result in made
            )
            counter.products.clear()
            counter.results.clear()

        def enter(module: nn.Module, _: Any) -> None:
            charge()
            calling.append(self.names[module])
            self.place.setdefault(calling[-1], len(self.place))

        def leave(*_: Any) -> None:
            charge()
            calling.pop()

        hooks = [
            handle
            for each in self.names
            for handle in (
                each.register_forward_pre_hook(enter),
                each.register_forward_hook(leave, always_call=True),
            )
        ]
        with flop_counter(list(self.module.parameters())) as counter:
            outputs = self.module(x)
            charge()
        for handle in hooks:
            handle.remove()
        return outputs

    def last(self, parameters: Sequence[TracedParameter]) -> str:
        weights = [each for each in parameters if each.kind == "weight"]
        return max((each.owner for each in weights or parameters), key=self.called)

    def called(self, owner: str) -> int:
        """Place of a module among those that were called."""
        return self.place.get(owner, 0)

    def parameters(self, x: Tensor, logits: Tensor) -> tuple[TracedParameter, ...]:
        """The parameters of the module, each with its share of what was counted.

        Args:
            x: some samples.
            logits: what the module made of them; is used up.
        """
        module = self.module
        named, used = dict(module.named_parameters()), nodes_below(logits.grad_fn)
        gradients = torch.autograd.grad(logits.sum(), list(named.values()), allow_unused=True)
        reached = {n for n, each in zip(named, gradients, strict=True) if each is not None}
        kinds = {name: self.kind(name, each) for name, each in module.named_parameters()}
        sizes = {n: p.numel() for n, p in module.named_parameters() if kinds[n] == "weight"}
        uses, names = dict.fromkeys(kinds, 0.0), {id(p): n for n, p in module.named_parameters()}
        every = {n: names[id(p)] for n, p in module.named_parameters(remove_duplicate=False)}
        tied = self.tied(every)
        # a decoder may multiply by what is looked up elsewhere
        multiplied = sizes | {n: named[n].numel() for n in tied if kinds[n] == "embedding"}
        factors = {name: defaultdict[int, float](float) for name in kinds}
        for owner, products in self.products.items():
            # tied weights count for every module that has them, and once in the model
            own = [
                first
                for n, first in every.items()
                if first in multiplied and self.caller(n) == owner
            ]
            own = own or [name for name in sizes if not owner or name.startswith(f"{owner}.")]
            own = own or list(sizes)
            own = [name for name in own if name in reached] or own
            size, by_factor = sum(multiplied[each] for each in own), defaultdict[int, float](float)
            for macs, both, result in products:
                # no gradient comes to a result that the outputs do not follow from
                ends = result.grad_fn is not None and result.grad_fn not in used
                for bits in filter(None, () if ends else both):
                    by_factor[bits] += macs
            for name in own:
                uses[name] += sum(macs for macs, *_ in products) / size
                for bits, macs in by_factor.items():
                    factors[name][bits] += macs / size
        found = []
        for i, (name, each) in enumerate(module.named_parameters()):
            owner, kind = self.caller(name), kinds[name]
            beside = name.rpartition(".")[0]
            weight = next((n for n in sizes if n.rpartition(".")[0] == beside), None)
            if kind == "weight" and not uses[name]:
                kind = "embedding"  # added, looked up or not used: nothing is multiplied by it
            if kind == "bias" and weight:
                uses[name] = uses[weight]
            owners = tied.get(name, [owner])
            shape, place = tuple(each.shape), min(2 * self.called(one) for one in owners)
            if len(owners) == 1 and any(is_below(other, owner) for other in self.place):
                place = self.first_use(each, x)
            rows = kind == "weight" and isinstance(self.holder(name), ROWS)
            shares = tuple((of / uses[name], bits) for bits, of in factors[name].items() if of)
            # a function with a backward pass of its own hides what its products depend on
            mine, unseen = 1 << i, 1 << len(named)
            hidden = not any(bits & mine for _, bits in shares)
            hidden &= any(bits & unseen for _, bits in shares)
            counts = uses[name], rows, name in reached, None if hidden else shares
            found.append(TracedParameter(name, shape, kind, owner, place, *counts))
        return tuple(found)

    def first_use(self, parameter: nn.Parameter, x: Tensor) -> int:
        """Place of a parameter of a module that calls others: `TracedParameter.place`."""
        every, places = list(self.module.parameters()), [2 * len(self.place)]

        def look(module: nn.Module, given: tuple, named: dict) -> None:
            inputs = (*given, *named.values())
            if any(isinstance(each, Tensor) and each.requires_grad for each in inputs):
                places.append(2 * self.called(self.names[module]) - 1)

        hooks = [each.register_forward_pre_hook(look, with_kwargs=True) for each in self.names]
        for each in every:
            each.requires_grad_(each is parameter)
        self.module(x)
        for each in every:
            each.requires_grad_()
        for handle in hooks:
            handle.remove()
        return min(places)

    def tied(self, every: Mapping[str, str]) -> dict[str, list[str]]:
        """The layers and look-ups that share a parameter, where several that are called do.

        Args:
            every: each name of a parameter, and its first one.
        """
        owners = dict[str, list[str]]()
        for name, first in every.items():
            holder = self.holder(name)
            owner, known = self.names[holder], owners.setdefault(first, [])
            called = isinstance(holder, (*SIMPLE, *LOOKED_UP)) and owner in self.place
            if called and owner not in known:  # a layer may have two names
                known.append(owner)
        return {first: known for first, known in owners.items() if len(known) > 1}

    def caller(self, name: str) -> str:
        """The module whose call uses a parameter: its own, or one around it that is called."""
        owner = f".{name.rpartition('.')[0]}.".partition(".parametrizations.")[0].strip(".")
        while owner and owner not in self.place:
            owner = owner.rpartition(".")[0]
        return owner

    def holder(self, name: str) -> nn.Module:
        """The module whose parameter it is."""
        return self.module.get_submodule(name.rpartition(".")[0])

    def kind(self, name: str, parameter: nn.Parameter) -> str:
        owner = self.holder(name)
        if isinstance(owner, (*SCALES, StaticBatchNorm)):
            return "norm"
        if isinstance(owner, LOOKED_UP):
            return "embedding"
        if parameter.dim() < 2:
            return "bias" if "bias" in name.rpartition(".")[2] else "norm"
        return "weight"


def nodes_below(node: Any) -> set[Any]:
    """A node of the graph of gradients, and all that it passes its gradient to."""
    found, waiting = {node}, [node]
    while waiting:
        new = {each for each, _ in waiting.pop().next_functions if each is not None} - found
        found |= new
        waiting += new
    return found


def is_parametrized(name: str) -> bool:
    return ".parametrizations." in f".{name}."


def is_below(name: str, owner: str) -> bool:
    """Is it a module within another one, and none that makes one of its parameters?"""
    inside = bool(name) if not owner else name.startswith(f"{owner}.")
    return inside and not is_parametrized(name)

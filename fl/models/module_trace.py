"""What a torch module does with a batch: order of calls, FLOPs, use of random numbers.

The formulas of `torch.utils.flop_counter` and of `UNCOUNTED` count: convolutions and products of
matrices and vectors, 2 FLOP a multiply-add; activations, norms and look-ups count nothing. What is
counted inside of a module, but in none of its children, is divided among the module's own weights
by their sizes; a module without weights of its own divides it among those below it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fl.errors import ModelError
from fl.models.batch_norm import StaticBatchNorm

BATCH = 2  # samples that are traced
SCALES = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._NormBase)
LOOKED_UP = (nn.Embedding, nn.EmbeddingBag)
_ATEN = torch.ops.aten
UNCOUNTED: dict[Any, Callable[..., int]] = {  # products without a formula in torch: their FLOP
    _ATEN.mv: lambda matrix, vector, **_: 2 * matrix.numel(),
    _ATEN.addmv: lambda start, matrix, vector, **_: 2 * matrix.numel(),
    _ATEN.dot: lambda one, other, **_: 2 * one.numel(),
    _ATEN.addbmm: lambda start, one, other, **_: 2 * one.numel() * other.shape[-1],
}
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
        place: twice that of the owner in the order in which modules are first called; of a
            parameter beside modules one less than of the first that it changes the input of.
        uses: how often a forward pass of one sample multiplies by, or adds, each coordinate.
        inner: its input is computed within its own module.
        rows: each of its rows feeds one output.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    owner: str
    place: int
    uses: float
    inner: bool
    rows: bool


@dataclass(frozen=True)
class Trace:
    """Parameters in the order of ``named_parameters``, and what a forward pass does.

    Args:
        outputs: shape of the outputs of one sample.
        random: does it draw random numbers while it trains, as dropout does?
        last: the last module with weights of its own that is called; without any, with parameters.
    """

    parameters: tuple[TracedParameter, ...]
    outputs: tuple[int, ...]
    random: bool
    last: str


def trace(module: nn.Module, x: Tensor, name: str) -> Trace:
    """What a module does with a batch.

    Args:
        module: with `StaticBatchNorm` for batch norm; is not changed.
        x: some samples [BATCH, ...].
        name: of the model, for errors.

    Raises:
        ModelError: the module cannot be a federated model, in one sentence.
    """
    check_parameters(module, name)
    copy = deepcopy(module)
    before = {key: value.clone() for key, value in copy.named_buffers()}
    counted = CountedCall(copy)
    copy.train()
    random, outputs = draws_numbers(lambda: counted(x))
    changed = [key for key, value in copy.named_buffers() if not torch.equal(value, before[key])]
    if changed:
        raise ModelError(
            f"model {name} changes its buffer {changed[0]} while it trains; only parameters are "
            "learned and sent: make it one, or leave it constant"
        )
    shape = output_shape(outputs, name)
    if not logits_of(outputs).requires_grad:
        raise ModelError(
            f"model {name} gives outputs without a gradient; compute them from the parameters by "
            "functions of torch, not of numpy, without detach and no_grad"
        )
    _, parameters = draws_numbers(lambda: counted.parameters(x))
    copy.eval()
    with torch.no_grad():
        if draws_numbers(lambda: copy(x))[0]:
            raise ModelError(f"model {name} draws random numbers when it is evaluated")
    return Trace(parameters, shape, random, counted.last(parameters))


def check_parameters(module: nn.Module, name: str) -> None:
    found = list(module.named_parameters())
    if not found:
        raise ModelError(f"model {name} has no parameters")
    for key, parameter in found:
        if parameter.dtype != torch.float32:
            raise ModelError(f"model {name}: {key} is {parameter.dtype}; parameters are float32")
        if not parameter.requires_grad:
            raise ModelError(
                f"model {name}: {key} requires no gradient; every parameter is learned and sent: "
                "register what stays as a buffer"
            )


def draws_numbers(call: Any) -> tuple[bool, Any]:
    """Does a call draw from torch's random numbers? And its result."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        result = call()
        return not torch.equal(before, torch.get_rng_state()), result


def logits_of(outputs: Any) -> Any:
    """The outputs, or their ``logits`` where a module gives several things by name."""
    return getattr(outputs, "logits", outputs)


def output_shape(outputs: Any, name: str) -> tuple[int, ...]:
    outputs = logits_of(outputs)
    if not isinstance(outputs, Tensor) or outputs.shape[:1] != (BATCH,):
        found = type(outputs).__name__
        if isinstance(outputs, Tensor):
            found = f"a tensor {list(outputs.shape)} for {BATCH} samples"
        problem = "give a tensor [samples, outputs], or an object with that as its logits"
        raise ModelError(f"model {name} gives {found}; {problem}")
    return tuple(outputs.shape[1:])


class CountedCall:
    """Calls a module and counts what each of its modules does."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.names = {each: name for name, each in module.named_modules()}
        self.macs = dict.fromkeys(self.names.values(), 0.0)  # multiply-adds of one sample
        self.place: dict[str, int] = {}

    def __call__(self, x: Tensor) -> Any:
        calling, counted = [""], 0

        def charge() -> None:
            nonlocal counted
            total = counter.total
            self.macs[calling[-1]] += (total - counted) / (2 * BATCH)
            counted = total

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
        with flop_counter() as counter:
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

    def parameters(self, x: Tensor) -> tuple[TracedParameter, ...]:
        """The parameters of the module, each with its share of what was counted."""
        module = self.module
        kinds = {name: self.kind(name, each) for name, each in module.named_parameters()}
        sizes = {n: p.numel() for n, p in module.named_parameters() if kinds[n] == "weight"}
        uses, names = dict.fromkeys(kinds, 0.0), {id(p): n for n, p in module.named_parameters()}
        every = {n: names[id(p)] for n, p in module.named_parameters(remove_duplicate=False)}
        for owner, macs in self.macs.items():
            # tied weights count for every module that has them, and once in the model
            own = [
                first for n, first in every.items() if first in sizes and self.caller(n) == owner
            ]
            own = own or [name for name in sizes if not owner or name.startswith(f"{owner}.")]
            own = own or list(sizes)
            for name in own:
                uses[name] += macs / sum(sizes[each] for each in own)
        found, seen = [], set[tuple[str, str]]()
        for name, each in module.named_parameters():
            owner, kind = self.caller(name), kinds[name]
            beside = name.rpartition(".")[0]
            weight = next((n for n in sizes if n.rpartition(".")[0] == beside), None)
            if kind == "weight" and not uses[name]:
                kind = "embedding"  # added or looked up: nothing is multiplied by it
            if kind == "bias" and weight:
                uses[name] = uses[weight]
            tensor = beside if is_parametrized(name) else name  # which has several parameters
            inner = any(o == owner and t != tensor for o, t in seen)
            inner = inner and kind == "weight" and "weight_ih_l0" not in name
            seen |= {(owner, tensor)} if kind == "weight" else set()
            shape, place = tuple(each.shape), 2 * self.called(owner)
            if any(is_below(other, owner) for other in self.place):
                place = self.first_use(each, x)
            rows = kind == "weight" and isinstance(self.holder(name), ROWS)
            found.append(TracedParameter(name, shape, kind, owner, place, uses[name], inner, rows))
        return tuple(found)

    def first_use(self, parameter: nn.Parameter, x: Tensor) -> int:
        """Place of a parameter of a module that calls others: `TracedParameter.place`."""
        every, found = list(self.module.parameters()), [2 * len(self.place)]

        def look(module: nn.Module, given: tuple, named: dict) -> None:
            inputs = (*given, *named.values())
            if any(isinstance(each, Tensor) and each.requires_grad for each in inputs):
                found.append(2 * self.called(self.names[module]) - 1)

        hooks = [each.register_forward_pre_hook(look, with_kwargs=True) for each in self.names]
        for each in every:
            each.requires_grad_(each is parameter)
        self.module(x)
        for each in every:
            each.requires_grad_()
        for handle in hooks:
            handle.remove()
        return min(found)

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


def is_parametrized(name: str) -> bool:
    return ".parametrizations." in f".{name}."


def is_below(name: str, owner: str) -> bool:
    """Is it a module within another one, and none that makes one of its parameters?"""
    inside = bool(name) if not owner else name.startswith(f"{owner}.")
    return inside and not is_parametrized(name)


class FlopsOfOperations(TorchDispatchMode):
    """Adds up what `torch.utils.flop_counter` charges for operations within it, and `UNCOUNTED`.

    ``FlopCounterMode`` counts the same, but imports torch's compiler: 2.4 s of CPU in each process.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what is skipped imports it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, kind = kwargs or {}, func._overloadpacket
        flops = flop_registry.get(kind) or UNCOUNTED.get(kind)
        if flops is None:
            with self:
                given = func.decompose(*args, **kwargs)
            return func(*args, **kwargs) if given is NotImplemented else given
        given = func(*args, **kwargs)
        self.total += flops(*args, **kwargs, out_val=given)
        return given


@contextmanager
def flop_counter() -> Iterator[FlopsOfOperations]:
    # oneDNN computes an LSTM as one operation, which torch does not count. The warnings are about
    # settings of other hardware, which torch touches too.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), FlopsOfOperations() as counter:
            yield counter

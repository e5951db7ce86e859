"""FLOPs of torch's operations as they run, and the parameters that their factors depend on.

The formulas of `torch.utils.flop_counter` and of `UNCOUNTED` count: convolutions and products of
matrices and vectors, 2 FLOP a multiply-add; activations, norms and look-ups count nothing. A
backward pass takes the gradient by a factor, for as many FLOPs again, where the factor depends on a
parameter that is trained, and the outputs follow from the product otherwise than by `detach`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_ATEN = torch.ops.aten
UNCOUNTED: dict[Any, Callable[..., int]] = {  # products without a formula in torch: their FLOP
    _ATEN.mv: lambda matrix, vector, **_: 2 * matrix.numel(),
    _ATEN.addmv: lambda start, matrix, vector, **_: 2 * matrix.numel(),
    _ATEN.dot: lambda one, other, **_: 2 * one.numel(),
    _ATEN.addbmm: lambda start, one, other, **_: 2 * one.numel() * other.shape[-1],
    _ATEN._scaled_dot_product_flash_attention_for_cpu: lambda q, k, *_, **__: (
        2 * 2 * q.numel() * k.shape[-2]  # the values are as wide as the queries
    ),
}


class FlopsOfOperations(TorchDispatchMode):
    """Notes what `torch.utils.flop_counter` charges for operations within it, and `UNCOUNTED`.

    ``FlopCounterMode`` counts the same, but imports torch's compiler: 2.4 s of CPU in each process.

    Args:
        parameters: of the module that is called.

    Attributes:
        products: FLOPs of each product, and of its two factors the parameters that they depend on,
            as sets of bits: 1 << i for the i-th.
        unseen: the bit of a factor where autograd is off: in no_grad, and in the forward pass of a
            function with a backward pass of its own.
        results: of each product, what it has made.
    """

    def __init__(self, parameters: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self.results: list[Any] = []
        self.products: list[tuple[float, tuple[int, int]]] = []
        self.unseen = 1 << len(parameters)
        self._bits = {id(each): 1 << i for i, each in enumerate(parameters)}
        self._known = dict[Any, int]()  # of nodes of the graph of gradients

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what is skipped imports it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, kind = kwargs or {}, func._overloadpacket
        if kind.__name__.endswith("_"):  # in place it costs as much
            kind = getattr(_ATEN, kind.__name__[:-1], kind)
        flops = flop_registry.get(kind) or UNCOUNTED.get(kind)
        if flops is None:
            with self:
                given = func.decompose(*args, **kwargs)
            return func(*args, **kwargs) if given is NotImplemented else given
        given = func(*args, **kwargs)
        self._add(flops(*args, **kwargs, out_val=given), kind.__name__, args)
        made = given[0] if isinstance(given, tuple) else given
        self.results += [made] * (len(self.products) - len(self.results))
        return given

    def _add(self, flops: float, name: str, args: Any) -> None:
        if "attention" in name:
            q, k, v = map(self._parameters_of, args[:3])
            self.products += [(flops / 2, (q, k)), (flops / 2, (q | k, v))]
            return
        first = int(name.startswith(("add", "badd")))  # what a product is added to is no factor
        one, other = map(self._parameters_of, args[first : first + 2])
        self.products.append((flops, (one, other)))

    def _parameters_of(self, factor: Tensor) -> int:
        """The parameters that a factor depends on, as autograd knows them."""
        if not torch.is_grad_enabled():
            return self.unseen
        if not factor.requires_grad:
            return 0
        if factor.grad_fn is None:
            return self._bits.get(id(factor), 0)
        waiting = [factor.grad_fn]
        while waiting:
            node = waiting[-1]
            below = [each for each, _ in node.next_functions if each is not None]
            if new := [each for each in below if each not in self._known]:
                waiting += new
                continue
            bits = self._bits.get(id(getattr(node, "variable", None)), 0)
            for each in below:
                bits |= self._known[each]
            self._known[waiting.pop()] = bits
        return self._known[factor.grad_fn]


@contextmanager
def flop_counter(parameters: Sequence[Tensor] = ()) -> Iterator[FlopsOfOperations]:
    # oneDNN computes an LSTM as one operation, which torch does not count. The warnings are about
    # settings of other hardware, which torch touches too.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), FlopsOfOperations(parameters) as counter:
            yield counter

"""FLOPs of torch's operations as they run.

The formulas of `torch.utils.flop_counter` and of `UNCOUNTED` count: convolutions and products of
matrices and vectors, 2 FLOP a multiply-add; activations, norms and look-ups count nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_ATEN = torch.ops.aten
UNCOUNTED: dict[Any, Callable[..., int]] = {  # products without a formula in torch: their FLOP
    _ATEN.mv: lambda matrix, vector, **_: 2 * matrix.numel(),
    _ATEN.addmv: lambda start, matrix, vector, **_: 2 * matrix.numel(),
    _ATEN.dot: lambda one, other, **_: 2 * one.numel(),
    _ATEN.addbmm: lambda start, one, other, **_: 2 * one.numel() * other.shape[-1],
}


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

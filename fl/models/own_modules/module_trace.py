"""What a torch module does with a batch: order of calls, FLOPs, use of random numbers."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from fl.errors import ModelError
from fl.models.own_modules.counted_call import BATCH, CountedCall, TracedParameter
from fl.models.own_modules.repeatability import check_repeats

COMPUTES_AGAIN = (
    "computes layers again in its backward pass, as torch.utils.checkpoint does, when the weights "
    "of the device are no longer in the module; call the layers directly, and save the tensors "
    "that a backward pass of your own needs"
)


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


class MetaTensorsRefused(TorchDispatchMode):
    """Operations on tensors that hold nothing end in an error.

    Torch lets some of them pass: products read whatever is in the memory.

    Args:
        name: of the model, for errors.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(isinstance(each, Tensor) and each.is_meta for each in args):
            raise ModelError(f"model {self.name} {COMPUTES_AGAIN}")
        return func(*args, **(kwargs or {}))


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
    try:
        _, parameters = draws_numbers(lambda: counted.parameters(x, logits_of(outputs)))
    except RuntimeError as error:
        if "checkpoint" not in str(error):
            raise
        raise ModelError(f"model {name} {COMPUTES_AGAIN}") from error
    copy.eval()
    with torch.no_grad():
        if draws_numbers(lambda: copy(x))[0]:
            raise ModelError(f"model {name} draws random numbers when it is evaluated")
    check_repeats(module, x, name)
    return Trace(parameters, shape, random, counted.last(parameters))


def check_parameters(module: nn.Module, name: str) -> None:
    found = list(module.named_parameters())
    if not found:
        raise ModelError(f"model {name} has no parameters")
    for key, parameter in found:
        if not parameter.numel():
            shape = list(parameter.shape)
            raise ModelError(
                f"model {name}: {key} has shape {shape}, which holds no number; leave it out"
            )
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

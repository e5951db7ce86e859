"""A `torch.nn.Module` of the user's own as an architecture: its parameters are the flat model w.

Batch norm is static (`fl.models.batch_norm`), other buffers stay as they are. What a module draws
at random while it trains, such as dropout, follows from a seed that is given for each step. A
submodel is computed with its other weights at zero: the module itself is never cut.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from math import prod

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from fl.contracts import Array
from fl.errors import ClassifierError, ModelError
from fl.models.architectures import Architecture, batch_norm
from fl.models.batch_norm import Norms, StaticBatchNorm, with_static_batch_norm
from fl.models.layers.layer import LayerTensor, Shape
from fl.models.layout import Layout, Slot, UnitAxis
from fl.models.own_modules.counted_call import BATCH
from fl.models.own_modules.module_making import seeded
from fl.models.own_modules.module_source import sources
from fl.models.own_modules.module_trace import MetaTensorsRefused, Trace, logits_of, trace
from fl.models.own_modules.module_units import with_units
from fl.models.own_modules.unit_check import UnitSearch

# Torch has one generator for all threads: a pass that draws from it keeps the others waiting.
RANDOM = threading.Lock()


@dataclass(frozen=True, eq=False)
class ModuleArchitecture(Architecture):
    """A module of the user's own.

    Args:
        name: of the model, for errors.
        input_shape: of one sample.
        classes: outputs.
        layers: none.
        make: makes the module with its first weights.
        text: samples are codes, int.
        classifier: names of the modules or parameters whose role is classifier; None: the last
            module with weights that a forward pass calls.
    """

    make: Callable[[], nn.Module]
    text: bool = False
    classifier: tuple[str, ...] | None = None
    seeds: Iterator[int] | None = field(default=None, repr=False)

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    @property
    def in_layers(self) -> bool:
        return False

    @property
    def sample(self) -> Tensor:
        """Samples as the module is traced with: zeros [BATCH, *input_shape]."""
        kind = torch.int64 if self.text else torch.float32
        return torch.zeros(BATCH, *self.input_shape, dtype=kind)

    def made(self, seed: int) -> nn.Module:
        """The module with the first weights that follow from a seed."""
        with seeded(seed):
            module = self.make()
            if not isinstance(module, nn.Module):
                found = type(module).__name__
                raise ModelError(f"model {self.name} is {found}, no torch.nn.Module")
            if any(isinstance(p, nn.UninitializedParameter) for p in module.parameters()):
                module(self.sample)  # lazy modules take their sizes from a batch
        return module

    @cached_property
    def _static(self) -> nn.Module:
        """The module with static batch norm, whose weights are not used."""
        return with_static_batch_norm(self.made(0), self.name)

    @cached_property
    def trace(self) -> Trace:
        module = deepcopy(self._static)
        for each in module.modules():
            if isinstance(each, StaticBatchNorm):
                each.normalise = batch_norm
        found = trace(module, self.sample, self.name)
        if found.outputs != (self.classes,) and (found.outputs or self.classes != 1):
            raise ModelError(
                f"model {self.name} has outputs {list(found.outputs)} for a sample; the data need "
                f"[{self.classes}]"
            )
        return found

    # --- what an architecture knows of itself ----------------------------------------------------

    @property
    def input_shapes(self) -> tuple[Shape, ...]:  # type: ignore[override]  # a cache in the base
        return (self.input_shape,)

    @cached_property
    def parts(self) -> tuple[LayerTensor, ...]:
        roles = self._role_of()
        return tuple(
            LayerTensor(
                *(p.name, p.shape, (), p.kind, roles(p.name), p.uses, "given"),
                reached=p.reached,
                factors=p.factors,
            )
            for p in self.trace.parameters
        )

    @cached_property
    def layout(self) -> Layout:
        plain, offset = [], 0
        for part, traced in zip(self.parts, self.trace.parameters, strict=True):
            axes: list[UnitAxis | None] = [None] * len(part.shape)
            if traced.rows:  # outputs that stay whole, unless they are found to be units
                axes[0] = UnitAxis(part.name, cut=False)
            where = offset, part.kind, part.role, traced.place, tuple(axes)
            plain.append(Slot(part.name, part.shape, *where))
            offset += prod(part.shape)
        layout, last = Layout(tuple(plain)), self.trace.last

        def logits(w: Tensor, x: Tensor) -> Tensor:
            return self.forward(layout.split(w), x)

        search = UnitSearch(self.name, self.made(0), last, self.classes, self.sample, logits)
        found = with_units(search, layout)
        self._check_backward(found)
        return found

    def _check_backward(self, layout: Layout) -> None:
        """Refuse a module that needs its parameters in the backward pass, when they are gone."""
        w = torch.from_numpy(self.initial(np.random.default_rng(0))).requires_grad_()
        training = copy(self)  # `in_training` asks for the layout
        training.__dict__["seeds"] = iter((0,))
        logits = training.forward(layout.split(w), self.sample)
        with MetaTensorsRefused(self.name):
            torch.autograd.grad(logits.sum(), w)

    def _role_of(self) -> Callable[[str], str]:
        """Name of a parameter -> features | classifier."""
        names = [each.name for each in self.trace.parameters]
        chosen = self.classifier or (self.trace.last,)

        def belongs(name: str, module: str) -> bool:
            return name == module or name.startswith(f"{module}.") or not module

        for each in self.classifier or ():
            if not any(belongs(name, each) for name in names):
                owners = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
                near = get_close_matches(each, [*owners, *names], n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(owners)}"
                raise ClassifierError(
                    f"model {self.name} has no module or parameter {each}; {hint}"
                )
        if self.classifier and all(any(belongs(n, each) for each in chosen) for n in names):
            raise ClassifierError(
                f"model {self.name}: the classifier is the whole model; leave features"
            )
        return lambda name: (
            "classifier" if any(belongs(name, each) for each in chosen) else "features"
        )

    @property
    def normalises(self) -> bool:
        return any(isinstance(each, StaticBatchNorm) for each in self._static.modules())

    def initial(self, rng: np.random.Generator) -> Array:
        module = self.made(int(rng.integers(2**63)))
        w = [parameter.detach().reshape(-1) for parameter in module.parameters()]
        return torch.cat(w).numpy().astype(np.float32)

    def digest(self) -> bytes:
        """SHA-256 of what the module is: its parts, its source and its first values."""
        module = self.made(0)
        total = hashlib.sha256(repr((self.layout.slots, module)).encode())
        for source in sources(module):
            total.update(source)
        for tensor in (*module.parameters(), *module.buffers()):
            total.update(tensor.detach().cpu().numpy().tobytes())
        return total.digest()

    # --- how it computes -------------------------------------------------------------------------

    @cached_property
    def _blank(self) -> nn.Module:
        """The module with parameters that hold nothing: those that compute are given to a call."""
        blank, empty = deepcopy(self._static), dict[nn.Parameter, nn.Parameter]()
        for name, parameter in list(blank.named_parameters(remove_duplicate=False)):
            owner, _, key = name.rpartition(".")
            if parameter not in empty:  # tied ones stay tied
                empty[parameter] = nn.Parameter(torch.empty(parameter.shape, device="meta"))
            blank.get_submodule(owner)._parameters[key] = empty[parameter]
        return blank

    @cached_property
    def _idle(self) -> list[nn.Module]:
        """Copies of the blank that no thread uses: a call puts its tensors into a copy."""
        return []

    def in_training(self, seeds: Iterable[int]) -> ModuleArchitecture:
        """The module in training mode, which draws by the next of the seeds in every pass."""
        _ = self.layout  # what is cached goes into the copy: finding it takes passes of its own
        training = copy(self)
        training.__dict__["seeds"] = iter(seeds)
        return training

    def forward(self, tensors: Sequence[Tensor], x: Tensor, norms: Norms | None = None) -> Tensor:
        try:
            module = self._idle.pop()
        except IndexError:  # more passes at a time than ever before
            module = deepcopy(self._blank)
        names = [each.name for each in self.trace.parameters]
        given = dict(zip(names, tensors, strict=False))  # further tensors are ignored
        try:
            self._prepare(module, x, norms)
            if self.seeds is not None and self.trace.random:
                devices = [x.device.index or 0] if x.device.type == "cuda" else []
                with RANDOM, torch.random.fork_rng(devices=devices):
                    torch.manual_seed(next(self.seeds))
                    outputs = functional_call(module, given, (x,))
            else:
                outputs = functional_call(module, given, (x,))
        except IndexError as error:
            if not self.text or not str(error).startswith("index out of range"):  # of a look-up
                raise
            problem = f"looks up a code that it does not know; the largest one here is {x.max()}"
            raise ModelError(f"model {self.name} {problem}") from error
        finally:
            self._idle.append(module)
        logits = logits_of(outputs)
        # squeeze() takes away the dimension of a single sample, too
        return logits if logits.dim() > 1 else logits.reshape(-1, self.classes)

    def _prepare(self, module: nn.Module, x: Tensor, norms: Norms | None) -> None:
        """Mode, batch norm and device of the buffers for a pass of x."""
        normalise = batch_norm if norms is None else norms.begin(len(x))
        for each in module.modules():
            each.training = self.seeds is not None
            if isinstance(each, StaticBatchNorm):
                each.normalise = normalise
            for key, buffer in each._buffers.items():
                if buffer is not None and buffer.device != x.device:
                    each._buffers[key] = buffer.to(x.device)

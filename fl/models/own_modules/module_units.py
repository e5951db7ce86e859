"""Units of a torch module: which dimensions of its tensors are made of the same channels.

The package torch-pruning follows the module's operations and finds what has to be pruned together.
A group of units counts only if a check with numbers finds that units which are left out cannot be
seen in the output, whatever weights lead into them: layer norm or attention across units fail it,
and such groups stay whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from torch import nn
from torch.nn.utils import parametrize

from fl.models.layout import Layout, UnitAxis
from fl.models.own_modules.counted_call import LOOKED_UP, SIMPLE
from fl.models.own_modules.module_trace import logits_of
from fl.models.own_modules.unit_check import OUTPUT, Axes, UnitSearch, checked, divided

INSTALL = 'pip install "edgesim[units]"'


def with_units(model: UnitSearch, plain: Layout) -> Layout:
    """The layout with the units of the module's tensors, or the reason why they are not known.

    Args:
        model: the module.
        plain: its layout without units.
    """
    output = output_axes(model, plain)
    if not output:
        last = model.last
        reason = f"its last layer {last} is no nn.Linear with {model.outputs} outputs"
        return replace(plain, no_units=sentence(model, reason))
    if find_spec("torch_pruning") is None:
        reason = f"torch-pruning, which finds them, is not installed: {INSTALL}"
        return replace(divided(plain, output), no_units=sentence(model, reason))
    try:
        groups = dependency_groups(model, plain)
    except Exception as error:  # the package follows foreign code, which can do anything
        reason = f"torch-pruning cannot follow its operations ({type(error).__name__}: {error})"
        return replace(divided(plain, output), no_units=sentence(model, reason))
    found = checked(model, plain, groups)
    if not found:
        reason = "no layer was found whose outputs the others use one by one"
        return replace(divided(plain, output), no_units=sentence(model, reason))
    return divided(plain, output | {place: axis for axes in found for place, axis in axes.items()})


def sentence(model: UnitSearch, reason: str) -> str:
    return (
        f"the hidden units of model {model.name}, which this method leaves out, are not known: "
        f"{' '.join(reason.split())}; use a method that leaves out none or single weights, such as "
        "fedavg or liu"
    )


def output_axes(model: UnitSearch, plain: Layout) -> Axes:
    """The outputs of the last layer, one per class; empty where the last layer is another."""
    last = model.last
    layer = model.module.get_submodule(last)
    dense = isinstance(layer, nn.Linear) and not parametrize.is_parametrized(layer)
    mine = [slot for slot in plain.slots if slot.name in (f"{last}.weight", f"{last}.bias")]
    if not last:  # the module itself is the layer
        mine = [slot for slot in plain.slots if slot.name in ("weight", "bias")]
    if not dense or any(slot.shape[0] != model.outputs for slot in mine):
        return {}
    return {(slot.name, 0): UnitAxis(OUTPUT) for slot in mine}


def dependency_groups(model: UnitSearch, plain: Layout) -> list[Axes]:
    """The groups of units that torch-pruning finds and a layout can describe."""
    import torch_pruning

    module = model.module.eval()
    names = {id(each): name for name, each in module.named_modules()}
    shapes = {slot.name: slot.shape for slot in plain.slots}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = torch_pruning.DependencyGraph().build_dependency(
            module, example_inputs=model.sample, output_transform=logits_of
        )
    last = module.get_submodule(model.last)
    found: list[Axes] = []
    for group in graph.get_all_groups(root_module_types=[*SIMPLE, nn.Embedding]):
        if group[0].dep.target.module is last:
            continue
        axes: Axes | None = {}
        for item in group:
            pairs = list(zip(item.idxs, item.root_idxs or item.idxs, strict=True))
            axes = with_member(axes, item.dep, pairs, names, shapes)
        if axes:
            found.append(axes)
    return found


def with_member(
    axes: Axes | None,
    dependency: Any,
    places: Sequence[tuple[int, int]],
    names: Mapping[int, str],
    shapes: Mapping[str, tuple[int, ...]],
) -> Axes | None:
    """The axes of a group with those of one more of its members; None: it cannot be described.

    Args:
        axes: so far; None: cannot be described.
        dependency: of torch-pruning: a module, and whether its inputs or outputs belong to it.
        places: its inputs or outputs, each with its unit.
        names: of modules by identity.
        shapes: of tensors by name.
    """
    module = dependency.target.module
    if axes is None or id(module) not in names:  # an operation without weights, of torch-pruning
        if isinstance(module, nn.Parameter) or type(module).__name__ in ("_ConcatOp", "_SplitOp"):
            return None
        return axes
    name, inputs = names[id(module)], "in_channels" in dependency.handler.__name__
    place_of = {"weight": int(inputs), "bias": 0}
    if isinstance(module, LOOKED_UP):
        place_of = {"weight": 1}
    elif isinstance(module, nn.modules.batchnorm._BatchNorm):
        place_of = {"weight": 0, "bias": 0}
    elif not isinstance(module, SIMPLE) or getattr(module, "groups", 1) != 1:
        return None
    if inputs:
        place_of.pop("bias", None)
    group = next(iter(axes.values())).group if axes else name
    for key, place in place_of.items():
        tensor = f"{name}.{key}" if name else key
        if tensor not in shapes:
            continue
        axis = axis_of(places, shapes[tensor][place], group)
        if axis is None or axes.get((tensor, place), axis) != axis:
            return None
        axes = axes | {(tensor, place): axis}
    return axes


def axis_of(places: Sequence[tuple[int, int]], size: int, group: str) -> UnitAxis | None:
    """A dimension of that size in units, from pairs of place and unit; None: it is no such axis."""
    unit = np.full(size, -1)
    for index, own in places:
        if not 0 <= index < size or unit[index] >= 0:
            return None
        unit[index] = own
    units = int(unit.max()) + 1
    repeat = int(np.argmax(unit != unit[0])) or size
    if unit.min() < 0 or size % (repeat * units):
        return None
    axis = UnitAxis(group, repeat, size // (repeat * units))
    return axis if np.array_equal(axis.spread(np.arange(units)), unit) else None

"""Refuse answers of a method's hooks that are of another kind than what was asked."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from fl.contracts import Array, Demand, Phase, Sent, Tensor, View, value_of
from fl.errors import MethodError

T = TypeVar("T")


def answer(hook: str, given: Any, kind: type[T]) -> T:
    """What a hook gave.

    Raises:
        MethodError: it is no ``kind``.
    """
    if not isinstance(given, kind):
        raise wrong_answer(hook, given, f"a {kind.__name__}")
    return given


def answers(hook: str, given: Any, kind: type[T]) -> tuple[T, ...]:
    """What a hook gave, as a tuple.

    Raises:
        MethodError: it is no tuple or list of ``kind``.
    """
    if not isinstance(given, tuple | list) or not all(isinstance(each, kind) for each in given):
        raise wrong_answer(hook, given, f"a tuple of {kind.__name__}, as in (x,)")
    return tuple(given)


def number(hook: str, given: Any) -> float:
    """The number that a hook gave.

    Raises:
        MethodError: it is none.
    """
    try:
        return float(given)
    except (TypeError, ValueError, RuntimeError):
        raise wrong_answer(hook, given, "a number") from None


def weights(hook: str, given: Any, size: int) -> Tensor:
    """The vector that a hook gave.

    Raises:
        MethodError: it is no tensor [size].
    """
    # torch is not imported for a check; only its tensors have a requires_grad
    if tuple(getattr(given, "shape", ())) != (size,) or not hasattr(given, "requires_grad"):
        raise wrong_answer(hook, given, f"a tensor [{size}]")
    return given


def flags(hook: str, given: Any, size: int) -> Tensor:
    """The mask of a phase or an upload.

    Raises:
        MethodError: it is no tensor bool [size].
    """
    kind = str(weights(hook, given, size).dtype)
    if kind != "torch.bool":
        raise wrong_answer(hook, given, f"a tensor bool [{size}]", f" of {kind}")
    return given


def coordinates(hook: str, given: Any, size: int) -> Array:
    """The mask that a hook gave.

    Raises:
        MethodError: it is no array bool [size].
    """
    mask = np.asarray(given.cpu() if hasattr(given, "cpu") else given)  # a tensor or a list too
    if mask.shape != (size,) or mask.dtype != bool:
        raise wrong_answer(hook, given, f"a mask, an array bool [{size}]")
    return mask


def phases_of(given: Any, size: int) -> tuple[Phase, ...]:
    """What ``local_update`` gave: phases of models [size].

    Raises:
        MethodError: there is no phase, the only one begins with no tensor [size], or one has no
            whole number of steps.
    """
    phases = answers("local_update", given, Phase)
    if not phases:
        raise MethodError("name", "names a method whose local_update gives no Phase; return one")
    for phase in phases:
        if not isinstance(phase.steps, Integral) or phase.steps < 0:
            raise wrong_answer("local_update, steps of Phase,", phase.steps, "a whole number >= 0")
    # One of several may train a vector of its own, as Liu's (19) does.
    if len(phases) == 1 and not callable(phases[0].start):
        weights("local_update, start of Phase,", phases[0].start, size)
    return phases


def values_of(phase: Phase, done: list[Tensor]) -> tuple[Tensor, Tensor, Any]:
    """Start, mask and submodel of a phase, given the results [P] of the phases before.

    Raises:
        MethodError: the start is no vector, one of the others has another size, or a learning rate
            is negative, nan or inf.
    """
    start = value_of(phase.start, done)
    if len(getattr(start, "shape", ())) != 1:
        raise wrong_answer("local_update, start of Phase,", start, "a tensor [P]")
    mask = flags("local_update, mask of Phase,", value_of(phase.mask, done), len(start))
    submodel = value_of(phase.submodel, done)
    if isinstance(submodel, tuple) and len(submodel) != phase.steps:
        allowed, found = f"one mask, or one for each of the {phase.steps} steps", len(submodel)
        raise wrong_answer("local_update, submodel of Phase,", submodel, allowed, f" of {found}")
    for each in submodel if isinstance(submodel, tuple) else (submodel,):
        if each is not None:
            flags("local_update, submodel of Phase,", each, len(start))
    lr = "local_update, lr of Phase,"
    low = high = phase.lr
    if not isinstance(phase.lr, Real):
        low, high = map(float, weights(lr, phase.lr, len(start)).aminmax())
    if not 0.0 <= low <= high < math.inf:
        wrong = high if low >= 0.0 else low
        problem = f"names a method whose {lr} is {wrong:g}; return a finite number of at least 0"
        raise MethodError("name", problem)
    if phase.scale is not None:
        weights("local_update, scale of Phase,", phase.scale, len(start))
    return start, mask, submodel


def computing(given: Any, size: int) -> Tensor:
    """The weights that a phase's ``effective`` gave.

    Raises:
        MethodError: they are no vector of at least the model's size.
    """
    shape = tuple(getattr(given, "shape", ()))
    if not hasattr(given, "requires_grad") or len(shape) != 1 or shape[0] < size:
        allowed = f"a tensor [{size}], or a longer one"
        raise wrong_answer("local_update, effective of Phase,", given, allowed)
    return given


def losses(given: Any) -> tuple[Tensor, Tensor]:
    """What a phase's own loss minimises, and what of it is reported.

    Raises:
        MethodError: they are no pair, or the second is no number.
    """
    if not isinstance(given, tuple):
        return given, given
    if len(given) != 2:
        allowed = "one number, or a pair of them"
        raise wrong_answer("local_update, loss of Phase,", given, allowed)
    minimised, reported = given
    if not hasattr(reported, "requires_grad") or reported.numel() != 1:
        raise wrong_answer("local_update, loss of Phase,", reported, "one number, a tensor []")
    return minimised, reported


def bounds_of(method: Any) -> tuple[float, float]:
    """The pruning ratios that the allocator may choose, by ``rho_bounds``.

    Raises:
        MethodError: they are no two numbers in [0, 1] in rising order.
    """
    given = method.rho_bounds()
    try:
        low, high = map(float, given)
    except (TypeError, ValueError):
        raise wrong_answer("rho_bounds", given, "two numbers (low, high)") from None
    if not 0.0 <= low <= high <= 1.0:
        found = f"gives {low:g}, {high:g}; return low and high with 0 <= low <= high <= 1"
        raise MethodError("name", f"names a method whose rho_bounds {found}")
    return low, high


def demand_of(method: Any, state: Any, view: View, devices: Array) -> Demand:
    """What devices int [S] need, by ``demand``.

    Raises:
        MethodError: it is no `Demand`, or an amount is negative, nan or inf.
    """
    demand = answer("demand", method.demand(state, view, devices), Demand)
    fixed, prunable = demand.work_fixed, demand.work_prunable
    _amounts("bits_down", demand.bits_down)
    _amounts("bits_up", demand.bits_fixed, demand.bits_prunable)
    _amounts("weight_steps", fixed.weight_steps, prunable.weight_steps)
    _amounts("flops", fixed.flops, prunable.flops)
    return demand


def measures_of(given: Any) -> dict[str, Any]:
    """What ``measures`` gave: further numbers of the round by name.

    Raises:
        MethodError: it is no dict, or a value is no number.
    """
    measures = answer("measures", given, dict)
    for name, value in measures.items():
        number(f"measures, {name!r}", value)
    return measures


def sent_of(given: Any, size: int) -> Sent:
    """What ``encode`` gave, with values and a mask [size].

    Raises:
        MethodError: it is no `Sent`, has other sizes, or negative, nan or infinite bits.
    """
    sent = answer("encode", given, Sent)
    weights("encode, values of Sent,", sent.values, size)
    flags("encode, travels of Sent,", sent.travels, size)
    bits_of(sent)
    return sent


def bits_of(given: Any) -> float | None:
    """The bits of what ``encode`` gave, None where the payload has them.

    Raises:
        MethodError: it is no `Sent`, or the bits are negative, nan or inf.
    """
    bits = answer("encode", given, Sent).bits
    if bits is not None:
        _amounts("bits of Sent", bits)
    return bits


def _amounts(name: str, fixed: Any, prunable: Any = 0.0) -> None:
    """Refuse an amount that the ratio 0 or the ratio 1 leaves negative, nan or inf."""
    fixed, prunable = np.broadcast_arrays(np.atleast_1d(fixed), prunable)
    ends = np.stack([np.add(fixed, prunable), fixed])  # what is nan or inf is so in the sum
    # What rounds away in the sum of a fixed and a negative prunable amount is no debt.
    rounding = 1e-9 * np.maximum(np.abs(fixed), np.abs(prunable))
    wrong = ~(np.isfinite(ends) & (ends >= -rounding))
    if wrong.any():
        problem = f"names a method whose {name} are {ends[wrong][0]:g}"
        raise MethodError("name", f"{problem}; give a finite number of at least 0")


def wrong_answer(hook: str, given: Any, allowed: str, more: str = "") -> MethodError:
    """The sentence about an answer of another kind; ``more`` says what is not seen of it."""
    shape = getattr(given, "shape", None)
    found = type(given).__name__ + ("" if shape is None else f" {list(shape)}") + more
    return MethodError("name", f"names a method whose {hook} gives {found}; return {allowed}")


def not_personal(k: int, own: Tensor, index: Tensor) -> MethodError:
    """The sentence about what stays at device k and cannot be its personal weights."""
    found = f"names a method whose state keeps {list(own.shape)} at device {k}, no personal weights"
    cure = "a method that keeps something else there answers personalise too"
    return MethodError("name", f"{found} {list(index.shape)}; {cure}")

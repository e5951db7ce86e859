"""Refuse answers of a method's hooks that are of another kind than what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from fl.contracts import Array, Demand, Phase, Sent, Tensor, View, value_of
from fl.errors import MethodError
from fl.method_base.state import State

T = TypeVar("T")


def answer(hook: str, given: Any, kind: type[T]) -> T:
    """What a hook gave.

    Raises:
        MethodError: it is no ``kind``.
    """
    if not isinstance(given, kind):
        raise _wrong(hook, given, f"a {kind.__name__}")
    return given


def answers(hook: str, given: Any, kind: type[T]) -> tuple[T, ...]:
    """What a hook gave, as a tuple.

    Raises:
        MethodError: it is no tuple or list of ``kind``.
    """
    if not isinstance(given, tuple | list) or not all(isinstance(each, kind) for each in given):
        raise _wrong(hook, given, f"a tuple of {kind.__name__}, as in (x,)")
    return tuple(given)


def weights(hook: str, given: Any, size: int) -> Tensor:
    """The vector that a hook gave.

    Raises:
        MethodError: it is no tensor [size].
    """
    # torch is not imported for a check; only its tensors have a requires_grad
    if tuple(getattr(given, "shape", ())) != (size,) or not hasattr(given, "requires_grad"):
        raise _wrong(hook, given, f"a tensor [{size}]")
    return given


def coordinates(hook: str, given: Any, size: int) -> Array:
    """The mask that a hook gave.

    Raises:
        MethodError: it is no array bool [size].
    """
    mask = np.asarray(given.cpu() if hasattr(given, "cpu") else given)  # a tensor or a list too
    if mask.shape != (size,) or mask.dtype != bool:
        raise _wrong(hook, given, f"a mask, an array bool [{size}]")
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
        if not isinstance(phase.steps, Integral):
            raise _wrong("local_update, steps of Phase,", phase.steps, "a whole number")
    # One of several may train a vector of its own, as Liu's (19) does.
    if len(phases) == 1 and not callable(phases[0].start):
        weights("local_update, start of Phase,", phases[0].start, size)
    return phases


def values_of(phase: Phase, done: list[Tensor]) -> tuple[Tensor, Tensor, Any]:
    """Start, mask and submodel of a phase, given the results [P] of the phases before.

    Raises:
        MethodError: the start is no vector, or one of the others has another size.
    """
    start = value_of(phase.start, done)
    if len(getattr(start, "shape", ())) != 1:
        raise _wrong("local_update, start of Phase,", start, "a tensor [P]")
    mask = weights("local_update, mask of Phase,", value_of(phase.mask, done), len(start))
    submodel = value_of(phase.submodel, done)
    for each in submodel if isinstance(submodel, tuple) else (submodel,):
        if each is not None:
            weights("local_update, submodel of Phase,", each, len(start))
    if not isinstance(phase.lr, Real):
        weights("local_update, lr of Phase,", phase.lr, len(start))
    return start, mask, submodel


def bounds_of(method: Any) -> tuple[float, float]:
    """The pruning ratios that the allocator may choose, by ``rho_bounds``.

    Raises:
        MethodError: they are no two numbers in [0, 1] in rising order.
    """
    given = method.rho_bounds()
    try:
        low, high = map(float, given)
    except (TypeError, ValueError):
        raise _wrong("rho_bounds", given, "two numbers (low, high)") from None
    if not 0.0 <= low <= high <= 1.0:
        found = f"gives {low:g}, {high:g}; return low and high with 0 <= low <= high <= 1"
        raise MethodError("name", f"names a method whose rho_bounds {found}")
    return low, high


def first_state(method: Any) -> Any:
    """The state before the first round, by ``start``.

    Raises:
        MethodError: it is no state of any kind, or its model has another size.
    """
    given = method.start()
    if not hasattr(given, "g") or not hasattr(given, "to_arrays"):
        raise _wrong("start", given, "a State")
    if isinstance(given, State):
        weights("start, w of the state,", given.w, method.layout.size)
    return given


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


def following(hook: str, before: T, given: Any) -> T:
    """The state that a hook gave in place of the one ``before``.

    Raises:
        MethodError: it is of another kind, its model has another size, or what it remembers is no
            tensor.
    """
    state = answer(hook, given, type(before))
    if isinstance(before, State) and isinstance(state, State):
        weights(f"{hook}, w of the state,", state.w, len(before.w))
        remembered(f"{hook}, memo", before.memo, state.memo)
        remembered(f"{hook}, local", before.local, state.local)
    return state


def remembered(where: str, before: Mapping[Any, Tensor], now: Mapping[Any, Tensor]) -> None:
    """Check what a hook put into a dict of the state that goes through checkpoints.

    Raises:
        MethodError: a value is no tensor.
    """
    if now is before:
        return
    for key, value in now.items():
        if not hasattr(value, "requires_grad"):
            raise _wrong(f"{where}[{key!r}] of the state,", value, "a tensor")


def measures_of(given: Any) -> dict[str, Any]:
    """What ``measures`` gave: further numbers of the round by name.

    Raises:
        MethodError: it is no dict, or a value is no number.
    """
    measures = answer("measures", given, dict)
    for name, value in measures.items():
        try:
            float(value)
        except (TypeError, ValueError, RuntimeError):
            raise _wrong(f"measures, {name!r}", value, "a number") from None
    return measures


def sent_of(given: Any, size: int) -> Sent:
    """What ``encode`` gave, with values and a mask [size].

    Raises:
        MethodError: it is no `Sent`, has other sizes, or negative, nan or infinite bits.
    """
    sent = answer("encode", given, Sent)
    weights("encode, values of Sent,", sent.values, size)
    weights("encode, travels of Sent,", sent.travels, size)
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
    ends = np.stack([fixed, np.add(fixed, prunable)])
    # What rounds away in the sum of a fixed and a negative prunable amount is no debt.
    rounding = 1e-9 * np.maximum(np.abs(fixed), np.abs(prunable))
    wrong = ~(np.isfinite(ends) & (ends >= -rounding))
    if wrong.any():
        problem = f"names a method whose {name} are {ends[wrong][0]:g}"
        raise MethodError("name", f"{problem}; give a finite number of at least 0")


def _wrong(hook: str, given: Any, allowed: str) -> MethodError:
    shape = getattr(given, "shape", None)
    found = type(given).__name__ + ("" if shape is None else f" {list(shape)}")
    return MethodError("name", f"names a method whose {hook} gives {found}; return {allowed}")

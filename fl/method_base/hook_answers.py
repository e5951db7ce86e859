"""Refuse answers of a method's hooks that are of another kind than what was asked."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fl.contracts import Array, Phase, Sent, Tensor
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
    if tuple(getattr(given, "shape", ())) != (size,):  # torch is not imported for a check
        raise _wrong(hook, given, f"a tensor [{size}]")
    return given


def coordinates(hook: str, given: Any, size: int) -> Array:
    """The mask that a hook gave.

    Raises:
        MethodError: it is no array bool [size].
    """
    if not isinstance(given, np.ndarray) or given.shape != (size,) or given.dtype != bool:
        raise _wrong(hook, given, f"a mask, an array bool [{size}]")
    return given


def phases_of(given: Any, size: int) -> tuple[Phase, ...]:
    """What ``local_update`` gave: phases of models [size].

    Raises:
        MethodError: they are no phases, or of models of another size.
    """
    phases = answers("local_update", given, Phase)
    for phase in phases:
        if callable(phase.start):  # it may begin with a vector of its own, as (19) of Liu does
            continue
        weights("local_update, start of Phase,", phase.start, size)
        if not callable(phase.mask):
            weights("local_update, mask of Phase,", phase.mask, size)
    return phases


def first_state(given: Any) -> Any:
    """What ``start`` gave.

    Raises:
        MethodError: it is no state of any kind.
    """
    if not hasattr(given, "g"):
        raise _wrong("start", given, "a State")
    return given


def following(hook: str, before: T, given: Any) -> T:
    """The state that a hook gave in place of the one ``before``.

    Raises:
        MethodError: it is of another kind, or its model has another size.
    """
    state = answer(hook, given, type(before))
    if isinstance(before, State) and isinstance(state, State):
        weights(f"{hook}, w of the state,", state.w, len(before.w))
    return state


def sent_of(given: Any, size: int) -> Sent:
    """What ``encode`` gave, with values and a mask [size].

    Raises:
        MethodError: it is no `Sent`, or has other sizes.
    """
    sent = answer("encode", given, Sent)
    weights("encode, values of Sent,", sent.values, size)
    weights("encode, travels of Sent,", sent.travels, size)
    return sent


def _wrong(hook: str, given: Any, allowed: str) -> MethodError:
    shape = getattr(given, "shape", None)
    found = type(given).__name__ + ("" if shape is None else f" {list(shape)}")
    return MethodError("name", f"names a method whose {hook} gives {found}; return {allowed}")

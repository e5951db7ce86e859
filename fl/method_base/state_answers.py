"""States of a method's hooks as a run goes on with them: refused where they cannot be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar

from fl.contracts import Tensor
from fl.errors import MethodError
from fl.method_base.hook_answers import answer, weights, wrong_answer
from fl.method_base.state import State

T = TypeVar("T")
S = TypeVar("S", bound=State)


def first_state(method: Any) -> Any:
    """The state before the first round, by ``start``.

    Raises:
        MethodError: it is no state of any kind, or its model has another size.
    """
    given = method.start()
    if not hasattr(given, "g") or not hasattr(given, "to_arrays"):
        raise wrong_answer("start", given, "a State")
    if isinstance(given, State):
        weights("start, w of the state,", given.w, method.layout.size)
    return given


def following(hook: str, before: T, given: Any) -> T:
    """The state that a hook gave in place of the one ``before``.

    Raises:
        MethodError: it is of another kind, its model has another size or other numbers, or what it
            remembers are no tensors by name or device.
    """
    state = answer(hook, given, type(before))
    if isinstance(before, State) and isinstance(state, State):
        weights(f"{hook}, w of the state,", state.w, len(before.w))
        if state.w.dtype != before.w.dtype:
            allowed, more = f"one of {before.w.dtype}", f" of {state.w.dtype}"
            raise wrong_answer(f"{hook}, w of the state,", state.w, allowed, more)
        _check_tensors(f"{hook}, memo", before.memo, state.memo, str, "a name, a text")
        _check_tensors(f"{hook}, local", before.local, state.local, Integral, "a device's number")
    return state


def _check_tensors(
    where: str, before: Mapping[Any, Tensor], now: Mapping[Any, Tensor], kind: type, keys: str
) -> None:
    """Check what a hook put into a dict of the state that goes through checkpoints.

    Raises:
        MethodError: a key is of another kind, which a resumed run would not find again, or a value
            is no tensor.
    """
    if now is before:
        return
    for key, value in now.items():
        if not isinstance(key, kind):
            raise wrong_answer(f"{where} of the state, the key {key!r},", key, keys)
        if not hasattr(value, "requires_grad"):
            raise wrong_answer(f"{where}[{key!r}] of the state,", value, "a tensor")


def storable(state: T) -> T:
    """The state at the end of a version, as a checkpoint gives it back.

    What it remembers comes in rising order of the keys, as in a resumed run: a hook that adds up a
    dict would round otherwise in the order of who trained first.

    Raises:
        MethodError: its notes are not what JSON keeps.
    """
    notes = getattr(state, "notes", None)
    try:
        if json.loads(json.dumps(notes)) != notes:
            _refuse_changed("notes", notes)
    except (TypeError, ValueError) as error:
        found = f"names a method whose notes of the state cannot be stored ({error})"
        problem = f"{found}; notes are numbers, texts, lists and dicts, tensors belong into memo"
        raise MethodError("name", problem) from None
    return in_stored_order(state) if isinstance(state, State) else state


def in_stored_order(state: S) -> S:
    """The state with every dict in rising order of its keys; itself where all of them are."""
    held = {"local": state.local, "memo": state.memo, "notes": state.notes}
    ordered = {name: _sorted(value) for name, value in held.items()}
    same = all(ordered[name] is held[name] for name in held)
    return state if same else replace(state, **ordered)


def _sorted(value: Any) -> Any:
    """A dict, with the dicts and lists of dicts in it, in rising order of keys."""
    if isinstance(value, list):
        inner = [_sorted(each) for each in value]
        return value if all(a is b for a, b in zip(inner, value, strict=True)) else inner
    if not isinstance(value, dict):
        return value
    keys = sorted(value)
    found = {key: _sorted(value[key]) for key in keys}
    same = keys == list(value) and all(found[key] is value[key] for key in keys)
    return value if same else found


def _refuse_changed(where: str, notes: Any) -> None:
    """Raise TypeError for what a resumed run would find as something else; nan is none of it."""
    if isinstance(notes, tuple):
        raise TypeError(f"{where} is a tuple, which comes back as a list")
    if isinstance(notes, dict):
        for key, each in notes.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, which comes back as a text")
            _refuse_changed(f"{where}[{key!r}]", each)
    elif isinstance(notes, list):
        for i, each in enumerate(notes):
            _refuse_changed(f"{where}[{i}]", each)

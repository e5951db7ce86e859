"""What a module of the user's own computes with: source of its classes and of what they name."""

from __future__ import annotations

import inspect
import json
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor, nn

LIBRARY = [Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "platstdlib")]
PACKAGES = {"site-packages", "dist-packages"}  # also those of a user or of the system
OF_ANY = vars(nn.Module()).keys()


def sources(module: nn.Module) -> Iterator[bytes]:
    """Source and plain values that decide the forward pass of a module.

    Bases of its classes, functions and values that they name, and the values that the module and
    those within it keep are followed; into what is installed, no further than its classes.
    """
    waiting: list[Any] = []
    for each in module.modules():
        waiting.append(type(each))
        kept = sorted(vars(each).keys() - OF_ANY)
        waiting += [part for key in kept for part in (key, vars(each)[key])]
    for found in followed(waiting):
        yield b"%d " % len(found) + found  # so that 1 and 23 are not 12 and 3


def followed(waiting: list[Any]) -> Iterator[bytes]:
    """The source, or value, of objects and of the user's own that they name, each once."""
    seen = dict[int, Any]()  # kept, so that no other object takes an id over
    while waiting:
        value = waiting.pop(0)
        value = getattr(value, "__wrapped__", value)  # behind a cache or a decorator
        if (text := as_json(value)) is not None:
            yield text
        elif id(value) not in seen:
            seen[id(value)] = value
            if isinstance(value, type | FunctionType):
                yield name_of(value) if is_of_torch(value) else source_of(value)
                waiting += parts_of_code(value)
            else:
                yield name_of(value)
                waiting += parts_of(value)


def as_json(value: Any) -> bytes | None:
    value = value.tolist() if isinstance(value, Tensor | np.ndarray) else value
    with suppress(TypeError, ValueError, RecursionError):
        return json.dumps(value, sort_keys=True).encode()
    return None


def parts_of_code(value: type | FunctionType) -> list[Any]:
    """Bases of a class, and what the functions of a class, or a function, name."""
    bases = [base for base in getattr(value, "__bases__", ()) if base is not object]
    if not is_own(value):
        return bases
    return bases + [each for code in functions_of(value) for each in named_by(code)]


def parts_of(value: Any) -> list[Any]:
    """What a container, a partial function or an object of the user's own consists of."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and is_own(type(value)):
        return [type(value), held]
    return [] if as_json(held) is None else [held]


def name_of(value: Any) -> bytes:
    return str(getattr(value, "__qualname__", type(value).__qualname__)).encode()


def source_of(value: type | FunctionType) -> bytes:
    """The source; where there is none, as in an interactive session, its name."""
    try:
        return inspect.getsource(value).encode()
    except (OSError, TypeError):
        return name_of(value)


def is_of_torch(value: type | FunctionType) -> bool:
    return (value.__module__ or "").startswith("torch.")


def is_own(value: type | FunctionType | ModuleType) -> bool:
    """Is it of a file of the user's, not of a package that is installed?"""
    try:
        path = Path(inspect.getfile(value)).resolve()
    except (OSError, TypeError):
        return False
    return not PACKAGES & set(path.parts) and not any(map(path.is_relative_to, LIBRARY))


def functions_of(value: type | FunctionType) -> list[FunctionType]:
    """A function, or those of a class, without decorators."""
    if isinstance(value, FunctionType):
        return [value]
    members = (getattr(each, "fget", None) or each for each in vars(value).values())
    given = [inspect.unwrap(getattr(each, "__func__", each)) for each in members if each]
    return [each for each in given if isinstance(each, FunctionType)]


def named_by(function: FunctionType) -> Iterator[Any]:
    """What the names in a function stand for: globals, closed-over values, parts of own modules."""
    names = list(dict.fromkeys(names_in(function.__code__)))
    found = [function.__globals__[each] for each in names if each in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # empty as yet
            continue
    for value in found:
        if isinstance(value, ModuleType) and is_own(value):
            yield from (getattr(value, each) for each in names if hasattr(value, each))
        elif not isinstance(value, ModuleType):
            yield value


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from names_in(each)

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
    seen = set[int]()
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, partial):
            waiting += [value.func, value.args, value.keywords]
        elif not isinstance(value, type | FunctionType) or is_of_torch(value):
            yield plain(value)
        elif id(value) not in seen:
            seen.add(id(value))
            yield source_of(value)
            if isinstance(value, type):
                waiting += [base for base in value.__bases__ if base is not object]
            if is_own(value):
                waiting += [each for code in functions_of(value) for each in named_by(code)]


def plain(value: Any) -> bytes:
    """A value as JSON; of what JSON does not keep its name, or what it holds as an object."""
    value = value.tolist() if isinstance(value, Tensor | np.ndarray) else value
    name = getattr(value, "__qualname__", "")
    for each in (value, name or getattr(value, "__dict__", "")):
        with suppress(TypeError, ValueError, RecursionError):
            return json.dumps(each, sort_keys=True).encode()
    return b""


def source_of(value: type | FunctionType) -> bytes:
    """The source; where there is none, as in an interactive session, its name."""
    try:
        return inspect.getsource(value).encode()
    except (OSError, TypeError):
        return value.__qualname__.encode()


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

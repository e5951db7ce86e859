"""The methods: one module or package each, found by its name.

The name ``pruning-only`` is the class PruningOnly in pruning_only.py. Modules whose names begin
with an underscore are bases of methods, and none themselves.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from fl.errors import MethodError, did_you_mean
from fl.method_base.method import Method


def available() -> list[str]:
    """Names of all methods."""
    return list(_names())


@cache  # a run asks a dozen times, and the folder is listed each time
def _names() -> tuple[str, ...]:
    modules = (module.name for module in iter_modules(__path__))
    return tuple(sorted(name.replace("_", "-") for name in modules if not name.startswith("_")))


def resolve(name: str) -> type[Method]:
    """The class of a method by its name.

    Raises:
        MethodError: There is none of that name.
    """
    if name not in available():
        problem = f'is "{name}"; allowed are {", ".join(available())}'
        raise MethodError("name", problem + did_you_mean(name, available()))
    module = import_module(f"fl.methods.{name.replace('-', '_')}")
    wanted = name.replace("-", "")
    return next(
        value
        for key, value in vars(module).items()
        if key.lower() == wanted and isinstance(value, type)
    )


def describe(name: str) -> tuple[str, str]:
    """One line about a method, and its source."""
    cls = resolve(name)
    return (cls.__doc__ or "").strip().split("\n")[0], cls.source

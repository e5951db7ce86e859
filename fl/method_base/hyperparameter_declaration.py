"""Hyper-parameters of methods: declared with meaning and source, checked before a run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fl.errors import MethodError, did_you_mean

KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    tuple: "a list of numbers",
}


@dataclass(frozen=True)
class Parameter:
    """One hyper-parameter: what it means, what it may be, its default and where that comes from.

    Attributes:
        kind: int, float, bool, str, or tuple (of floats).
        optional: Whether it may be none.
    """

    name: str
    kind: type
    optional: bool
    default: Any
    meaning: str
    source: str
    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """In words: a whole number >= 1, or none."""
        if self.choices:
            return ", ".join(self.choices)
        bounds = [
            f"{sign} {bound:g}"
            for sign, bound in ((">=", self.ge), (">", self.gt), ("<=", self.le))
            if bound is not None
        ]
        return " ".join([KINDS[self.kind], " and ".join(bounds)]).strip() + (
            ", or none" if self.optional else ""
        )

    def check(self, value: Any) -> Any:
        """The value in its type; MethodError where it is not allowed."""
        if self.optional and (value is None or value == "none"):
            return None
        if self.kind is float and type(value) is int:
            value = float(value)
        if (
            self.kind is tuple
            and isinstance(value, list | tuple)
            and all(type(one) in (int, float) for one in value)
        ):
            value = tuple(map(float, value))
        if type(value) is not self.kind or not self._within(value):
            raise MethodError(self.name, f"is {_shown(value)}; allowed is {self.allowed}")
        return value

    def _within(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.kind is tuple:
            return bool(value) and all(replace(self, kind=float)._within(one) for one in value)
        if self.kind not in (int, float):
            return True
        above = (self.ge is None or value >= self.ge) and (self.gt is None or value > self.gt)
        return isfinite(value) and above and (self.le is None or value <= self.le)


def _shown(value: Any) -> str:
    """A value as a scenario has it: true, "fast", 0.5."""
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def param(
    default: Any,
    meaning: str,
    *,
    source: str,
    ge: float | None = None,
    le: float | None = None,
    gt: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that is a hyper-parameter of a method."""
    about = {"meaning": meaning, "source": source, "ge": ge, "le": le, "gt": gt, "choices": choices}
    return field(default=default, metadata={"param": about}, kw_only=True)


@cache
def parameters(cls: Any) -> tuple[Parameter, ...]:
    """The hyper-parameters of a method class, those of its ancestors first."""
    hints = get_type_hints(cls)
    found = []
    for one in fields(cls):
        if "param" in one.metadata:
            hint = hints[one.name]
            options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            kind = next(
                get_origin(option) or option for option in options if option is not NoneType
            )
            found.append(
                Parameter(one.name, kind, NoneType in options, one.default, **one.metadata["param"])
            )
    return tuple(found)


def check(cls: Any, given: dict[str, Any]) -> dict[str, Any]:
    """All hyper-parameters of a method class: the given ones checked, the others by default.

    Raises:
        MethodError: One that the class does not have, that is not allowed, or that has no effect.
    """
    known = {p.name: p for p in parameters(cls)}
    for key in given:
        if key not in known:
            problem = f"is no parameter of this method (it has {', '.join(known)})"
            near = did_you_mean(key, known) or _undeclared(cls, key)
            raise MethodError(str(key), problem + near)
    values = {
        name: p.check(given[name]) if name in given else p.default for name, p in known.items()
    }
    conflict = cls.conflict(values)
    if conflict is not None:
        raise conflict
    for key, reason in cls.unread(values).items():
        if key in given:
            raise MethodError(key, f"is not read where {reason}; remove it")
    return values


def _undeclared(cls: Any, key: object) -> str:
    """The end of the sentence about an attribute of a class that is declared otherwise."""
    if not any(key in vars(base).get("__annotations__", ()) for base in cls.__mro__):
        return ""
    return f"; declare {key} by param(...), in a class with @dataclass(frozen=True, eq=False)"


def in_full(cls: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The hyper-parameters that a method reads, given or by default, as a scenario writes them.

    `check` takes them as it takes those given. Those without effect beside the others are left out.

    Raises:
        MethodError: As `check`.
    """
    values = check(cls, given)
    unread = cls.unread(values)
    return {name: _written(value) for name, value in values.items() if name not in unread}


def _written(value: Any) -> Any:
    if value is None:
        return "none"
    return list(value) if isinstance(value, tuple) else value


def with_length(cls: Any, given: dict[str, Any], rounds: int, devices: int) -> dict[str, Any]:
    """The given hyper-parameters, and those that follow from the length of a run.

    Args:
        cls: The method; its `by_length` says what follows.
        given: By name.
        rounds: Of the run.
        devices: K, of which the method asks ``participants`` in a round.

    Raises:
        MethodError: As `check`.
    """
    values = check(cls, given)
    unread, asked = cls.unread(values), values["participants"] or devices
    following = cls.by_length(rounds, min(asked, devices))
    missing = [name for name in following if values[name] is None and name not in unread]
    return given | {name: following[name] for name in missing}


def bind(cls: Any, task: Any, given: dict[str, Any]) -> Any:
    """The method with its parameters checked, on the task with the model that it trains.

    Raises:
        MethodError: As `check`.
    """
    values, architecture = check(cls, given), cls.architecture(task.architecture)
    return cls(
        task if architecture is task.architecture else replace(task, architecture=architecture),
        **values,
    )

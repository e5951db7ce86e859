"""Views and grants that record which of their fields are read.

A pure function cannot depend on a field that it did not read.
"""

from __future__ import annotations

from typing import Any

from fl.contracts import Grant, View
from fl.errors import LearningError


class LateReadError(LearningError):
    """A field was read for the first time after its record of readings was closed."""


class Readings:
    """Values of the fields that were read, by "Record.field"; once closed, no field is added."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.closed = False

    def add(self, field: str, value: Any) -> None:
        if field not in self.values and self.closed:
            raise LateReadError(f"{field} was read after the job was configured")
        self.values.setdefault(field, value)


class _Tracked:
    """An instance of the record's class that wraps the record and adds every reading."""

    def __getattribute__(self, name: str) -> Any:
        inside = object.__getattribute__(self, "__dict__")
        fields = object.__getattribute__(self, "__dataclass_fields__")
        # `dataclasses.replace` makes a copy of this class from values that were all read: it has
        # fields of its own and wraps nothing.
        if "wrapped" not in inside or (name not in fields and name != "__dict__"):
            return object.__getattribute__(self, name)
        if name == "__dict__":
            return {field: getattr(self, field) for field in fields}
        record, readings = inside["wrapped"]
        value = getattr(record, name)
        readings.add(f"{type(record).__name__}.{name}", value)
        return value


class TrackedView(_Tracked, View):
    pass


class TrackedGrant(_Tracked, Grant):
    pass


def tracked(record: View | Grant, readings: Readings) -> Any:
    """The record, with every field that is read of it added to ``readings``."""
    wrapper = object.__new__(TrackedView if isinstance(record, View) else TrackedGrant)
    object.__getattribute__(wrapper, "__dict__")["wrapped"] = record, readings
    return wrapper

"""Records that remember which of their fields were read: what a pure function did not read it cannot depend on."""

from __future__ import annotations

from typing import Any

from fl.contracts import Grant, View


class LateRead(Exception):
    """A field was read that had not been read when the list was closed."""


class Reading:
    """The fields that were read, with their values, by (kind of record, name); none is added once it is closed."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], Any] = {}
        self.closed = False

    def note(self, kind: str, name: str, value: Any) -> None:
        if (kind, name) in self.values:
            return
        if self.closed:
            raise LateRead(f"{kind}.{name} was read after the order was given")
        self.values[kind, name] = value


class _Seen:
    """Reads as the record that it stands for, and notes every field; it is a record of the same kind."""

    def __getattribute__(self, name: str) -> Any:
        look = object.__getattribute__
        names = look(self, "__dataclass_fields__")
        if name == "__dict__":
            return {field: getattr(self, field) for field in names}
        if name not in names:
            return look(self, name)
        seen = look(self, "__dict__").get("seen")
        if seen is None:  # a changed copy, for which everything was read
            return look(self, name)
        kind, record, reading = seen
        value = getattr(record, name)
        reading.note(kind, name, value)
        return value


class SeenView(_Seen, View):
    pass


class SeenGrant(_Seen, Grant):
    pass


def watched(record: View | Grant, reading: Reading) -> Any:
    """The record, with ``reading`` noting what is read of it."""
    seen = object.__new__(SeenView if isinstance(record, View) else SeenGrant)
    object.__getattribute__(seen, "__dict__")["seen"] = (type(record).__name__, record, reading)
    return seen

"""What every scenario key means: read off the fields of the schema, for people (`explain`) and editors (`schema`)."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from pydantic.fields import FieldInfo

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.scenario.fields import PLAIN, Reader
from edgesim.scenario.schema import Keys
from edgesim.scenario.section import Part

REQUIRED = "required"


@dataclass(frozen=True)
class KeyInfo:
    """One scenario key: ``key`` without list positions, ``devices.tx_power``."""

    key: str
    meaning: str
    unit: str  # SI unit inside the program; empty for words and counts
    allowed: str
    default: str  # as one would write it, or "required"
    source: str  # of the default; empty where there is none
    example: str
    section: bool  # holds other keys


def explain(key: str | None = None, of_methods: Sequence[KeyInfo] = ()) -> list[KeyInfo]:
    """A key and all keys below it; every key without an argument.

    Args:
        of_methods: the parameters of the methods, keys ``learning.method.*``, which this room does not know.
    Raises:
        ScenarioError: no such key, with the nearest one.
    """
    infos = with_parameters(of_methods)
    if key is None:
        return infos
    plain = re.sub(r"\[\d*\]|\.\d+(?=\.|$)", "", key)
    found = [info for info in infos if info.key == plain or info.key.startswith(plain + ".")]
    if not found:
        raise ScenarioError(f"{COMMAND_LINE}: {unknown(plain, infos)}")
    return found


def with_parameters(of_methods: Sequence[KeyInfo]) -> list[KeyInfo]:
    """All keys, those of the methods behind ``learning.method``."""
    infos = list(catalogue())
    place = next(i for i, info in enumerate(infos) if info.key == "learning.method") + 1
    return [*infos[:place], *of_methods, *infos[place:]]


def unknown(key: str, infos: Sequence[KeyInfo] = ()) -> str:
    """The sentence about a key that does not exist: the nearest sibling, or the same word elsewhere."""
    infos = infos or catalogue()
    parent, _, word = key.rpartition(".")
    prefix = f"{parent}." if parent else ""
    siblings = [i.key[len(prefix) :] for i in infos if i.key.startswith(prefix)]
    siblings = list(dict.fromkeys(name for name in siblings if "." not in name))
    near = difflib.get_close_matches(word, siblings, n=1)
    elsewhere = [i.key for i in infos if i.key.rpartition(".")[2] == word]
    far = difflib.get_close_matches(key, [i.key for i in infos], n=1, cutoff=0.75)
    if near or elsewhere or far:
        hint = f"did you mean {prefix + near[0] if near else (elsewhere or far)[0]}?"
    else:
        hint = f"allowed here: {', '.join(siblings)}." if siblings else "see edgesim explain."
    return f"the key {key[:80]} is unknown; {hint}"


def example(key: str) -> str:
    """How to write a key that is missing: ``bandwidth: 20 MHz``."""
    info = next((info for info in catalogue() if info.key == key), None)
    return f"{key.rpartition('.')[2]}: {info.example}" if info else key


def schema() -> dict[str, Any]:
    """JSON Schema of a scenario file; quantities are strings whose pattern lists the units."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Keys.model_json_schema(by_alias=True),
        "title": "edgesim scenario",
    }


@functools.cache
def catalogue() -> tuple[KeyInfo, ...]:
    """Every key once, in the order of the schema."""
    infos: dict[str, KeyInfo] = {}
    for info in _walk(Keys, ""):
        known = infos.get(info.key)
        if known is None:
            infos[info.key] = info
        elif (
            info.allowed not in known.allowed
        ):  # the same key in two kinds of path loss or partition
            both = {
                "allowed": f"{known.allowed} or {info.allowed}",
                "meaning": f"{known.meaning}; {info.meaning}",
            }
            infos[info.key] = replace(known, **both)
    return tuple(infos.values())


def _walk(part: type[Part], prefix: str) -> Iterator[KeyInfo]:
    for field in part.model_fields.values():
        key = f"{prefix}{field.alias}"
        sections = [] if reader_of(field) else list(_sections(field.annotation))
        yield _info(key, field, bool(sections))
        for section in sections:
            yield from _walk(section, key + ".")


def reader_of(field: FieldInfo) -> Reader | None:
    return next((part for part in field.metadata if isinstance(part, Reader)), None)


def _sections(annotation: Any) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from _sections(inner)


def _info(key: str, field: FieldInfo, section: bool) -> KeyInfo:
    extra, reader = field.json_schema_extra or {}, reader_of(field)
    if reader:
        allowed = reader.allowed
    else:
        allowed = "a section" if section else " or ".join(map(str, get_args(field.annotation)))
    unit = (reader.unit or "") if reader else ""
    return KeyInfo(
        key=key,
        meaning=field.description or "",
        unit="" if unit == PLAIN else unit,
        allowed=allowed,
        default=REQUIRED if field.is_required() else _default(field, reader),
        source=extra.get("source", ""),
        example=str(extra.get("example", "")),
        section=section,
    )


def _default(field: FieldInfo, reader: Reader | None) -> str:
    if reader is None:
        word = getattr(field.default, "mode", None) or getattr(field.default, "kind", None)
        return str(word) if word in ("ideal", "none") else "see its keys"
    if field.default is None:
        return "none"
    written = reader.write(field.default)
    return str(written).lower() if isinstance(written, bool) else str(written)

"""Every key of a scenario with its documentation, read from the sections of the schema."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from edgesim.scenario.fields import PLAIN
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import Reader, Section, reader_of

REQUIRED = "required"


@dataclass(frozen=True)
class KeyInfo:
    """The documentation of one scenario key.

    Args:
        key: without list positions, such as ``devices.tx_power``.
        meaning: in one line.
        unit: SI unit inside the program; empty for words and counts.
        allowed: what may be given.
        default: as one would write it, or "required".
        source: of the default; empty where there is none.
        example: a value as one would write it.
        section: does it hold other keys?
        only_with: the kinds of the section around it that have the key, such as
            ``learning.partition.kind: dirichlet``; empty: all.
    """

    key: str
    meaning: str
    unit: str
    allowed: str
    default: str
    source: str
    example: str
    section: bool
    only_with: str = ""


@functools.cache
def all_keys() -> tuple[KeyInfo, ...]:
    """Every key once, in the order of the schema."""
    infos: dict[str, KeyInfo] = {}
    for info in _below(ScenarioKeys, ""):
        known = infos.setdefault(info.key, info)
        # the same key in two kinds of a section
        if info.allowed not in known.allowed:
            known = replace(
                known,
                allowed=f"{known.allowed} or {info.allowed}",
                meaning=f"{known.meaning}; {info.meaning}",
            )
        if info.default != known.default:
            known = replace(
                known,
                default=f"{known.default} or {info.default}",
                source=f"{known.source}; {info.source}",
            )
        infos[info.key] = known
    for named_by, kinds in _kinds(ScenarioKeys, ""):
        for key in set[str]().union(*kinds.values()):
            words = [word for word, keys in kinds.items() if key in keys]
            if len(words) < len(kinds):
                infos[key] = replace(infos[key], only_with=f"{named_by}: {' or '.join(words)}")
    return tuple(infos.values())


def _kinds(section: type[Section], prefix: str) -> Iterator[tuple[str, dict[str, set[str]]]]:
    """Of each section with several kinds: the key that names them, and kind -> its keys."""
    for field in section.model_fields.values():
        below = f"{prefix}{field.alias}."
        kinds = [] if reader_of(field) else list(sections_of(field.annotation))
        if len(kinds) > 1:
            heads = [next(filter(_names_the_kind, kind.model_fields.values())) for kind in kinds]
            yield (
                f"{below}{heads[0].alias}",
                {
                    word: {info.key for info in _below(kind, below)}
                    for head, kind in zip(heads, kinds, strict=True)
                    for word in get_args(head.annotation)
                },
            )
        for kind in kinds:
            yield from _kinds(kind, below)


def _names_the_kind(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is Literal


def _below(section: type[Section], prefix: str) -> Iterator[KeyInfo]:
    """The keys of a section and of the sections in it."""
    for field in section.model_fields.values():
        inner = [] if reader_of(field) else list(sections_of(field.annotation))
        yield documented(f"{prefix}{field.alias}", field, bool(inner))
        for each in inner:
            yield from _below(each, f"{prefix}{field.alias}.")


def sections_of(annotation: Any) -> Iterator[type[Section]]:
    """The sections that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from sections_of(inner)


def documented(key: str, field: FieldInfo, section: bool) -> KeyInfo:
    """What the field of a section says about its key."""
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    reader = reader_of(field)
    if reader:
        allowed, unit = reader.allowed, reader.unit or ""
    else:
        allowed = "a section" if section else " or ".join(map(str, get_args(field.annotation)))
        unit = ""
    return KeyInfo(
        key=key,
        meaning=field.description or "",
        unit="" if unit == PLAIN else unit,
        allowed=allowed,
        default=REQUIRED if field.is_required() else _default(field, reader),
        source=str(extra.get("source", "")),
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

"""What every scenario key means: documentation for people, a JSON schema for editors."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from pydantic.fields import FieldInfo

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.scenario.fields import PLAIN
from edgesim.scenario.radio.own_loss_schema import SHORT_KEYS
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
    """

    key: str
    meaning: str
    unit: str
    allowed: str
    default: str
    source: str
    example: str
    section: bool


def explain_key(key: str | None = None, of_methods: Sequence[KeyInfo] = ()) -> list[KeyInfo]:
    """A key and all keys below it; every key without an argument.

    Args:
        key: dotted, with or without list positions.
        of_methods: the parameters of the methods, keys ``learning.method.*``, which are not in the
            schema.

    Raises:
        ScenarioError: no such key, with the nearest one.
    """
    infos = list(all_keys())
    place = next(i for i, info in enumerate(infos) if info.key == "learning.method") + 1
    infos[place:place] = of_methods
    if key is None:
        return infos
    plain = re.sub(r"\[\d*\]|\.\d+(?=\.|$)", "", key)
    found = [info for info in infos if info.key == plain or info.key.startswith(plain + ".")]
    if plain in SHORT_KEYS:
        (full,) = (info for info in infos if info.key == SHORT_KEYS[plain])
        meaning = f"{full.meaning}; short for {full.key} with model: trace"
        return [replace(full, key=plain, meaning=meaning)]
    if not found:
        problem = unknown_key(plain, [info.key for info in of_methods])
        raise ScenarioError(f"{COMMAND_LINE}: {problem}")
    return found


def unknown_key(key: str, of_methods: Iterable[str]) -> str:
    """The sentence about a key that does not exist, with the nearest one that does.

    Args:
        key: dotted, without list positions.
        of_methods: keys ``learning.method.*``.
    """
    parent, _, word = key.rpartition(".")
    prefix = f"{parent}." if parent else ""
    known = [*(info.key for info in all_keys()), *SHORT_KEYS, *of_methods]
    siblings = [each[len(prefix) :] for each in known if each.startswith(prefix)]
    siblings = list(dict.fromkeys(name for name in siblings if "." not in name))
    elsewhere = [each for each in known if each.rpartition(".")[2] == word]
    # first below the section where it was looked for, then the one in the fewest sections
    elsewhere.sort(key=lambda each: (not each.startswith(prefix), each.count(".")))
    above = [each for each in elsewhere if prefix.startswith(each.removesuffix(word))]
    # a key at the top that stands in a section is misplaced (solver is no misspelt server), and so
    # is one that stands in a section around its own
    cutoff = 0.9 if above or (elsewhere and not parent) else 0.6
    # cycles is meant for cycles_per_weight, and not for levels, which has as many of its letters
    begun = [name for name in siblings if word and name.startswith(f"{word}_")]
    near = begun or difflib.get_close_matches(word.lower(), siblings, n=1, cutoff=cutoff)
    # of a section that there is, one of its keys is wanted: what only shares its name is not near
    far = [] if parent and siblings else difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    if near or elsewhere or far:
        hint = f"did you mean {prefix + near[0] if near else (elsewhere or far)[0]}?"
    else:
        hint = f"allowed here: {', '.join(siblings)}." if siblings else "see edgesim explain."
    return f"the key {key[:80]} is unknown; {hint}"


def keys_of_methods() -> list[str]:
    """The parameters of all shipped methods, ``learning.method.*``, each once."""
    from fl import methods  # only an unknown key needs them, and they load for a while
    from fl.method_base.method import parameters

    found = (p.name for name in methods.available() for p in parameters(methods.resolve(name)))
    return [f"learning.method.{name}" for name in dict.fromkeys(found)]


def example_with(section: str, word: object) -> str | None:
    """How to write a section of which only the kind is given: ``partition: {kind: natural}``.

    With it stand the keys that the kind requires.
    """
    for info in all_keys():
        parent, _, name = info.key.rpartition(".")
        # none is a value of keys of many kinds, and says of none which it is
        if parent == section and word != "none" and word in info.allowed.split(" or "):
            keys = [f"{name}: {word}", *_required_beside(section, name, word)]
            return f"{section.rpartition('.')[2]}: {{{', '.join(keys)}}}"
    return None


def _required_beside(section: str, name: str, word: object) -> list[str]:
    """Examples of the keys without which a section of this kind is refused."""
    kinds: list[type[Section]] = [ScenarioKeys]
    for key in section.split("."):
        fields = [f for kind in kinds for f in kind.model_fields.values() if f.alias == key]
        kinds = [kind for field in fields for kind in _sections(field.annotation)]
    of_kinds = [list(kind.model_fields.values()) for kind in kinds]
    fields = [
        field
        for beside in of_kinds
        if any(f.alias == name and word in get_args(f.annotation) for f in beside)
        for field in beside
        if field.is_required()
    ]
    infos = [_documented(str(f.alias), f, section=False) for f in fields if f.alias != name]
    return [f"{info.key}: {info.example}" for info in infos]


def example_of(key: str) -> str:
    """How to write a key that is missing: ``bandwidth: 20 MHz``."""
    info = next((info for info in all_keys() if info.key == key), None)
    return f"{key.rpartition('.')[2]}: {info.example}" if info else key


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file; quantities are strings whose pattern lists the units."""
    schema = ScenarioKeys.model_json_schema(by_alias=True)
    for name in ("ChannelSection", "FadingSection"):
        schema["$defs"][name].pop("required")  # the rung of network.fidelity gives the rest
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "edgesim scenario",
    }


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
    return tuple(infos.values())


def _below(section: type[Section], prefix: str) -> Iterator[KeyInfo]:
    """The keys of a section and of the sections in it."""
    for field in section.model_fields.values():
        inner = [] if reader_of(field) else list(_sections(field.annotation))
        yield _documented(f"{prefix}{field.alias}", field, bool(inner))
        for each in inner:
            yield from _below(each, f"{prefix}{field.alias}.")


def _sections(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from _sections(inner)


def _documented(key: str, field: FieldInfo, section: bool) -> KeyInfo:
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

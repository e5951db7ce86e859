"""What every scenario key means: documentation for people, a JSON schema for editors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.scenario.documented_keys import KeyInfo, all_keys, documented, sections_of
from edgesim.scenario.radio.own_loss_schema import SHORT_KEYS
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import Section


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
        section = full.key.rpartition(".")[0]  # refused beside the short form
        meaning = f"{full.meaning}; in place of {section}, short for {full.key} with model: trace"
        return [replace(full, key=plain, meaning=meaning, only_with="")]
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
        kinds = [kind for field in fields for kind in sections_of(field.annotation)]
    of_kinds = [list(kind.model_fields.values()) for kind in kinds]
    fields = [
        field
        for beside in of_kinds
        if any(f.alias == name and word in get_args(f.annotation) for f in beside)
        for field in beside
        if field.is_required()
    ]
    infos = [documented(str(f.alias), f, section=False) for f in fields if f.alias != name]
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

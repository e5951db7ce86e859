"""A document as checked sections; what pydantic found wrong in the words of the other errors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgesim.errors import ScenarioError
from edgesim.scenario.documented_keys import all_keys
from edgesim.scenario.documents.document import Document, KeyPath
from edgesim.scenario.key_docs import (
    example_of,
    example_with,
    keys_of_methods,
    unknown_key,
)
from edgesim.scenario.radio.own_loss_schema import written_key
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import Section, ValueRefusedError, refuse

Checked = TypeVar("Checked", bound=ScenarioKeys)
MOST_NAMED = 10  # further missing keys in an error


def validated(model: type[Checked], document: Document, folder: Path) -> Checked:
    """The document as an object of a pydantic model.

    Args:
        model: `edgesim.scenario.Scenario`.
        document: a mapping.
        folder: paths in the document are relative to it.

    Raises:
        ScenarioError: the first thing that is wrong, in one sentence with its place.
    """
    try:
        context = {"document": document, "folder": folder}
        return model.model_validate(document.tree, context=context)
    except ValidationError as problem:
        raise _scenario_error(problem, document) from None


def _scenario_error(problem: ValidationError, document: Document) -> ScenarioError:
    """Unknown keys come before all others: a misspelt key also makes the right one missing.

    Else the order is that of the schema.
    """
    errors = problem.errors(include_url=False)
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    keys = _keys_of(first["loc"], document.tree)
    if first["type"] == "extra_forbidden":
        # the last part is the key itself, even where a kind is called the same
        keys = (*_keys_of(first["loc"][:-1], document.tree), first["loc"][-1])
        return ScenarioError(f"{document.place_of(keys)}: {_unexpected(keys)}")
    refused = _refused(first, keys).below(*keys)
    sentence = refused.problem
    if first["type"] == "missing":
        missing = [each["loc"] for each in errors if each["type"] == "missing"]
        sentence += _missing_too([_keys_of(each, document.tree) for each in missing[1:]])
    return document.error(written_key(document.tree, refused.keys), sentence, refused.shown)


def _missing_too(keys: Sequence[KeyPath]) -> str:
    """What the sentence of a missing key says of further ones, so that nobody meets each alone."""
    named = [".".join(map(str, each)) for each in keys[:MOST_NAMED]]
    more = [f"{len(keys) - MOST_NAMED} more"] if len(keys) > MOST_NAMED else []
    return f"; missing too: {', '.join([*named, *more])}" if named else ""


def _keys_of(location: KeyPath, tree: object) -> KeyPath:
    """The keys of a path, into which pydantic puts the kind of a section that has several."""
    keys: list[str | int] = []
    after_kind = False
    for part in location:
        written = isinstance(tree, dict) and part in tree
        # a key may be called as a kind is, its own (partition, file) or another one's
        after_kind = not after_kind and part in _kinds() and (not written or _is_kind(part, tree))
        if after_kind:
            continue
        keys.append(part)
        if isinstance(tree, list) and isinstance(part, int):
            tree = tree[part]
        else:
            tree = tree[part] if written and isinstance(tree, dict) else None
    return tuple(keys)


def _is_kind(word: str | int, tree: object) -> bool:
    return isinstance(tree, dict) and word in (tree.get("kind"), tree.get("model"))


@functools.cache
def _kinds() -> frozenset[str]:
    """The words that name the kind of a section, such as log-distance."""
    fields = (each for section in _below(Section) for each in section.model_fields.values())
    types = (field.annotation for field in fields)
    return frozenset(
        word for each in types if get_origin(each) is Literal for word in get_args(each)
    )


def _below(section: type[Section]) -> list[type[Section]]:
    """All subclasses of a section."""
    return [each for own in section.__subclasses__() for each in (own, *_below(own))]


def _unexpected(keys: KeyPath) -> str:
    name, parent = _without_positions(keys), ".".join(map(str, keys[:-1]))
    known = next((info for info in all_keys() if info.key == name), None)
    if known:
        kind = f"another kind of {parent} ({known.only_with.partition(': ')[2]})"
        key = ".".join(map(str, keys))
        return f"the key {key} belongs to {kind}; remove it, or change the kind"
    return unknown_key(name, keys_of_methods())


def _without_positions(keys: KeyPath) -> str:
    return ".".join(part for part in keys if isinstance(part, str))


def _refused(error: ErrorDetails, keys: KeyPath) -> ValueRefusedError:
    kind, context = error["type"], error.get("ctx", {})
    name = _without_positions(keys)
    if kind == "value_error":
        return context["error"]
    if kind == "missing":
        return ValueRefusedError(f"is missing; write for instance {example_of(name)}")
    if kind == "union_tag_not_found":
        key = context["discriminator"].strip("'")
        return ValueRefusedError(f"has no {key}; write for instance {example_of(f'{name}.{key}')}")
    if kind == "union_tag_invalid":
        allowed = context["expected_tags"].replace("'", "").replace(", ", " or ")
        key = context["discriminator"].strip("'")
        return refuse(error["input"][key], f"; allowed is {allowed}", key)
    wanted = "a list" if kind == "tuple_type" else "a mapping of keys"
    example = example_with(name, error["input"]) or example_of(name)
    return refuse(error["input"], f"; write {wanted}, for instance {example}")

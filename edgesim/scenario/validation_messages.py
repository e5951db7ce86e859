"""What pydantic found wrong, as one sentence of ours: place, key, what was given, what is allowed."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.scenario.fields import shorten
from edgesim.scenario.key_docs import catalogue, example, unknown
from edgesim.scenario.yaml_locations import Keys, Marked

# pydantic puts the kind of a union into the path
_TAGS = ("constant", "log-distance", "iid", "labels", "dirichlet", "speakers")


def complaint(problem: ValidationError, document: Marked) -> ScenarioError:
    """The first error, unknown keys before all others: a misspelt key also makes the right one missing."""
    errors = problem.errors(include_url=False)
    errors.sort(
        key=lambda error: error["type"] != "extra_forbidden"
    )  # stable: otherwise the order of the schema
    first = errors[0]
    keys = tuple(part for part in first["loc"] if part not in _TAGS)
    return ScenarioError(_sentence(first, keys, document))


def dotted(keys: Keys) -> str:
    return ".".join(map(str, keys))


def without_positions(keys: Keys) -> str:
    return dotted(tuple(part for part in keys if isinstance(part, str)))


def sentence(document: Marked, keys: Keys, given: str, rest: str) -> str:
    """``cell.yaml:14: network.bandwidth is 20 (no unit); write "20 MHz"``."""
    place = document.place(keys)
    verb = "=" if place == COMMAND_LINE else " is "
    return f"{place}: {dotted(keys) or 'the scenario'}{verb}{given}{rest}"


def _sentence(error: dict[str, Any], keys: Keys, document: Marked) -> str:
    kind, context, given = error["type"], error.get("ctx", {}), shorten(error["input"])
    if kind == "refused":
        keys += tuple(context["keys"])
        if context["given"] is None:
            return f"{document.place(keys)}: {dotted(keys)} {context['rest']}"
        return sentence(document, keys, context["given"], context["rest"])
    if kind == "extra_forbidden":
        return f"{document.place(keys)}: {_superfluous(keys)}"
    if kind == "missing":
        return f"{document.place(keys)}: {dotted(keys)} is missing; write for instance {example(without_positions(keys))}"
    if kind == "union_tag_not_found":
        key = context["discriminator"].strip("'")
        return f"{document.place(keys)}: {dotted(keys)} has no {key}; write for instance {example(dotted((*keys, key)))}"
    if kind == "union_tag_invalid":
        keys += (context["discriminator"].strip("'"),)
        allowed = context["expected_tags"].replace("'", "").replace(", ", " or ")
        return sentence(document, keys, shorten(context["tag"]), f"; allowed is {allowed}")
    wanted = "a list" if kind == "tuple_type" else "a mapping of keys"
    return sentence(
        document, keys, given, f"; write {wanted}, for instance {example(without_positions(keys))}"
    )


def _superfluous(keys: Keys) -> str:
    key, parent = without_positions(keys), dotted(keys[:-1])
    if any(
        info.key == key for info in catalogue()
    ):  # of another model of path loss, another kind of partition
        return f"the key {dotted(keys)} belongs to another kind of {parent}; remove it, or change the kind"
    return unknown(key)

"""Catalogue of the methods with their parameters, the solvers, data sets and models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import solvers
from edgesim.runs.method_and_allocator import RUN_SOLVERS
from edgesim.scenario.key_docs import KeyInfo
from fl import methods
from fl.data import datasets
from fl.method_base.method import parameters
from fl.models import architectures as models
from fl.selection.selection_rules import RULES
from fl.timing_only import ABOUT as ABOUT_NONE


def catalog(kind: str) -> list[tuple[str, str, str]]:
    """(name, one line, source) of each entry of a kind: methods, solvers, datasets ..."""
    if kind == "methods":
        return [(name, *methods.describe(name)) for name in methods.available()]
    if kind == "solvers":
        return [(name, *solvers.ABOUT[name]) for name in RUN_SOLVERS]
    table: Any = {
        "datasets": datasets.DATASETS,
        "models": models.MODELS,
        "selection": RULES,
    }[kind]
    rows = [(name, line, source) for name, (_, line, source) in table.items()]
    return [*rows, ABOUT_NONE] if kind == "datasets" else rows


def method_keys() -> list[KeyInfo]:
    """The parameters of all methods as scenario keys; one key per meaning where methods differ."""
    found: dict[str, list[KeyInfo]] = {}
    for name in methods.available():
        for p in parameters(methods.resolve(name)):
            info = KeyInfo(
                key=f"learning.method.{p.name}",
                meaning=p.meaning,
                unit="",
                allowed=p.allowed,
                default=written(p.default),
                source=p.source,
                example=written(p.default),
                section=False,
            )
            same = found.setdefault(p.name, [])
            known = next((i for i in same if replace(i, meaning=info.meaning) == info), None)
            if known is None:
                same.append(replace(info, meaning=f"{p.meaning} (of {name})"))
            else:
                same[same.index(known)] = replace(known, meaning=f"{known.meaning[:-1]}, {name})")
    return [info for infos in found.values() for info in infos]


def written(value: object) -> str:
    """A default as one would write it in YAML."""
    return {"None": "none", "True": "true", "False": "false"}.get(str(value), str(value))

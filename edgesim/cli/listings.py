"""Catalogue of what scenarios can name: what is shipped, and what installed packages register."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import solvers
from edgesim.extensions.entry_points import installed, installed_rows
from edgesim.runs.setup.make_allocator import RUN_SOLVERS
from edgesim.scenario.documented_keys import KeyInfo
from edgesim.scenario.radio.channel_schema import PathLoss
from fl import methods
from fl.data import datasets
from fl.learned_selection.catalogue import LEARNING_RULES
from fl.method_base.method import Method, parameters
from fl.models.named_models import MODELS
from fl.selection.selection_rules import RULES
from fl.timing_only import ABOUT as ABOUT_NONE


def catalog(kind: str) -> list[tuple[str, str, str]]:
    """(name, one line, source or package) of each entry of a kind: methods, solvers, ..."""
    return [*shipped_rows(kind), *installed_rows(kind)]


def shipped_rows(kind: str) -> list[tuple[str, str, str]]:
    """The entries of a kind that are this project's own."""
    if kind == "methods":
        return [(name, *methods.describe(name)) for name in methods.available()]
    if kind == "solvers":
        return [(name, *solvers.ABOUT[name]) for name in RUN_SOLVERS]
    if kind == "channels":
        about = (model.model_fields["model"].description or "" for model in get_args(PathLoss))
        return [(*text.split(": ", 1), "network.channel.path_loss.model") for text in about]
    if kind == "selection":
        learning = [(name, rule.about, rule.source) for name, rule in LEARNING_RULES.items()]
        return [*((name, line, source) for name, (_, line, source) in RULES.items()), *learning]
    table: Any = {
        "datasets": datasets.DATASETS,
        "models": MODELS,
    }[kind]
    rows = [(name, line, source) for name, (_, line, source) in table.items()]
    return [*rows, ABOUT_NONE] if kind == "datasets" else rows


def method_keys() -> list[KeyInfo]:
    """The parameters of all methods as scenario keys; one key per meaning where methods differ.

    Those of methods of installed packages are among them.
    """
    found: dict[str, list[KeyInfo]] = {}
    classes = {name: methods.resolve(name) for name in methods.available()}
    of_packages = installed("methods").items()
    classes |= {n: c for n, c in of_packages if isinstance(c, type) and issubclass(c, Method)}
    for name, cls in classes.items():
        for p in parameters(cls):
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

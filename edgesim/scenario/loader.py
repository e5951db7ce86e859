"""A scenario: a YAML file with units -> a checked, immutable object in SI.

``load`` reads one scheme, ``expand`` all schemes of a file. Bad input is a ScenarioError: one sentence with file, line,
key, what was given and what is allowed. Keys and defaults: schema.py, schema_cell.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, ValidationError

from edgesim.errors import ScenarioError
from edgesim.scenario.distributions import Draw, MethodSpec, Noise
from edgesim.scenario.fields import LABEL, shorten
from edgesim.scenario.key_docs import KeyInfo, example, explain, reader_of, schema
from edgesim.scenario.network_schema import Constant, DeviceClass, LogDistance
from edgesim.scenario.overrides import apply, merge, parse_overrides
from edgesim.scenario.schema import Keys
from edgesim.scenario.section import Part
from edgesim.scenario.validation_messages import complaint, dotted, sentence
from edgesim.scenario.yaml_locations import Marked, read_file

__all__ = [
    "Constant", "DeviceClass", "Draw", "KeyInfo", "LogDistance", "MethodSpec", "Noise", "Scenario", "ScenarioError",
    "expand", "explain", "load", "schema",
]  # fmt: skip
_NOT_PHYSICS = ("name", "seed", "schemes", "scheme", "sweep", "provenance")


class Scenario(Keys):
    """One checked scenario in SI units; ``scenario.network.bandwidth_hz``."""

    _document: Marked = PrivateAttr(default_factory=lambda: Marked({}))
    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """Where the file lies: paths in it are relative to this."""
        return self._folder

    @property
    def device_count(self) -> int:
        """K, the devices of all classes together."""
        return sum(each.count for each in self.devices)

    def where(self, *keys: str | int) -> str:
        """Where a key was set: ``file.yaml:14`` or ``command line``; keys may be dotted."""
        return self._document.place(_path(keys))

    def error(self, key: str | tuple[str | int, ...], problem: str) -> ScenarioError:
        """The error ``file.yaml:14: <key> <problem>``; ``problem`` begins with a verb, such as ``is -1; ...``."""
        path = _path(key if isinstance(key, tuple) else (key,))
        return ScenarioError(f"{self._document.place(path)}: {dotted(path)} {problem}")

    def digest(self, sections: Sequence[str] | None = None) -> str:
        """SHA-256 [64 hex digits] of all that shapes a result, except the seed, which stands beside it in a run's
        folder name; the name, the scheme's label, a sweep and the provenance do not count either.

        sections: only these count, such as learning.
        """
        every = {key: value for key, value in _plain(self).items() if key not in _NOT_PHYSICS}
        content = every if sections is None else {key: every[key] for key in sections}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_yaml(self, provenance: dict[str, Any] | None = None, seed: int | None = None) -> str:
        """Every key with its value and unit; ``load`` reads it back to the same digest. Trace files are written out.

        provenance: written under that key, for the record.     seed: the one used, where it was not the scenario's.
        """
        from io import StringIO

        from ruamel.yaml import YAML

        content = {
            key: value
            for key, value in _plain(self).items()
            if key not in ("schemes", "sweep", "provenance")
        }
        if seed is not None:
            content["seed"] = seed
        if provenance is not None:
            content["provenance"] = provenance
        writer, text = YAML(typ="safe", pure=True), StringIO()
        writer.default_flow_style, writer.sort_base_mapping_type_on_output, writer.width = (
            False,
            False,
            10**6,
        )
        writer.representer.ignore_aliases = lambda node: True  # the reader refuses aliases
        writer.dump(content, text)
        return text.getvalue()


def load(path: str | Path, overrides: Sequence[str] = (), label: str | None = None) -> Scenario:
    """Read one scenario.

    Args:
        path: YAML file.     overrides: ``key=value`` texts, they win over everything in the file.
        label: which entry of the file's ``schemes``; None takes the file without them.
    Raises:
        ScenarioError: the first thing that is wrong, in one sentence.
    """
    document, changes = _with_schemes(read(path), parse_overrides(overrides))
    if label is None:
        return _check(apply(document, changes), Path(path))
    labels = _labels(document)
    if label not in labels:
        known = ", ".join(labels) or "no schemes at all"
        raise ScenarioError(
            f'{document.place(("schemes",))}: there is no scheme "{label}"; the file has {known}'
        )
    return _scheme(document, label, changes, Path(path))


def expand(path: str | Path, overrides: Sequence[str] = ()) -> list[tuple[str | None, Scenario]]:
    """All schemes of a file as (label, scenario), in its order; one pair with the file's own label (None) without."""
    return schemes_of(read(path), parse_overrides(overrides), Path(path))


def schemes_of(document: Marked, changes: list, path: Path) -> list[tuple[str | None, Scenario]]:
    """`expand` of a file that is read already, with overrides that are parsed already."""
    document, changes = _with_schemes(document, changes)
    if "schemes" not in document.tree:
        scenario = _check(apply(document, changes), path)
        return [(scenario.scheme, scenario)]
    return [(label, _scheme(document, label, changes, path)) for label in _labels(document)]


def read(path: str | Path) -> Marked:
    """A scenario file, a mapping, not yet checked."""
    document = read_file(Path(path))
    if not isinstance(document.tree, dict):
        raise ScenarioError(
            sentence(
                document, (), shorten(document.tree), "; write a mapping of keys, name: ... first"
            )
        )
    return document


def _with_schemes(document: Marked, changes: list) -> tuple[Marked, list]:
    """The file with the overrides of ``schemes`` applied, and the other overrides."""
    document = apply(document, [change for change in changes if change[0][0] == "schemes"])
    return document, [change for change in changes if change[0][0] != "schemes"]


def _labels(document: Marked) -> list[str]:
    schemes = document.tree.get("schemes", {})
    if not isinstance(schemes, dict) or ("schemes" in document.tree and not schemes):
        raise ScenarioError(
            sentence(
                document, ("schemes",), shorten(schemes), "; write a mapping of label: changes"
            )
        )
    folders: dict[str, str] = {}
    for label, changes in schemes.items():
        place = document.place(("schemes", label))
        twin = folders.setdefault(str(label).replace(" ", "-"), label)
        if twin != label:
            raise ScenarioError(
                f'{place}: the labels "{twin}" and "{label}" would share a folder; rename one of them'
            )
        if not LABEL.matches(label):
            raise ScenarioError(
                f"{place}: the label {shorten(label)} is not allowed; write {LABEL.looks}"
            )
        if not isinstance(changes, dict | None):
            raise ScenarioError(
                sentence(
                    document, ("schemes", label), shorten(changes), "; write a mapping of changes"
                )
            )
    return list(schemes)


def _scheme(document: Marked, label: str, changes: list, path: Path) -> Scenario:
    patch = document.under(("schemes", label))
    patch.tree = patch.tree or {}
    merged = merge(_without_schemes(document), patch)
    merged.put(("scheme",), Marked(label, {(): patch.place(())}))
    return _check(apply(merged, changes), path)


def _without_schemes(document: Marked) -> Marked:
    tree = {key: value for key, value in document.tree.items() if key != "schemes"}
    return Marked(
        tree, {at: place for at, place in document.places.items() if at[:1] != ("schemes",)}
    )


def _check(document: Marked, path: Path) -> Scenario:
    try:
        scenario = Scenario.model_validate(document.tree, context={"folder": path.parent})
    except ValidationError as problem:
        raise complaint(problem, document) from None
    scenario._document, scenario._folder = document, path.parent
    _check_devices(scenario)
    _check_clock(scenario)
    _check_learning(scenario)
    return scenario


def _check_devices(scenario: Scenario) -> None:
    if not scenario.devices:
        raise scenario.error(
            "devices", "is an empty list; write at least one device class, such as {count: 10, ...}"
        )
    for i, each in enumerate(scenario.devices):
        _check_lengths(scenario, each, ("devices", i), each.count, "count")
        _check_distance(scenario, each, ("devices", i))
    path_loss = scenario.network.channel.path_loss
    _check_lengths(
        scenario, path_loss, ("network", "channel", "path_loss"), scenario.device_count, "the cell"
    )


def _check_lengths(scenario: Scenario, part: Part, path: tuple, count: int, what: str) -> None:
    """Lists have one value per device; a trace has at least that many."""
    for name, field in type(part).model_fields.items():
        value, at = getattr(part, name), (*path, field.alias)
        if isinstance(value, Part):
            _check_lengths(scenario, value, at, count, what)
        elif isinstance(value, Draw) and value.kind in ("list", "trace"):
            size, enough = len(value.values), len(value.values) >= count
            if not enough or (value.kind == "list" and size > count):
                problem = (
                    f"has {size} values, but {what} has {count} devices; write one value per device"
                )
                raise scenario.error(at, problem.replace("count has", "count says"))


def _check_distance(scenario: Scenario, each: DeviceClass, path: tuple) -> None:
    model = scenario.network.channel.path_loss.model
    if model == "log-distance" and each.distance_m is None:
        raise scenario.error(
            (*path, "distance"), "is missing; path_loss model log-distance needs it, such as 100 m"
        )
    if model != "log-distance" and each.distance_m is not None:
        problem = (
            f"is not read with path_loss model {model}; remove it, or write model: log-distance"
        )
        raise scenario.error((*path, "distance"), problem)


def _check_clock(scenario: Scenario) -> None:
    if scenario.clock.mode == "deadline" and scenario.budget.latency_threshold_s is None:
        problem = "is deadline, which needs budget.latency_threshold; write for instance budget: {latency_threshold: 25 ms}"
        raise scenario.error("clock.mode", problem)


def _check_learning(scenario: Scenario) -> None:
    """A data set is divided; without one there is nothing to divide and nothing to train."""
    learning, counted = scenario.learning, scenario.learning.dataset == "none"
    if learning.partition is None and not counted:
        raise scenario.error(
            "learning.partition", f"is missing; write for instance {example('learning.partition')}"
        )
    if counted and learning.partition is not None:
        raise scenario.error(
            "learning.partition", "is not read with dataset: none; remove it, or write none"
        )
    if counted and learning.device != "cpu":
        raise scenario.error("learning.device", "is not read with dataset: none; remove it")


def _plain(part: Part) -> dict[str, Any]:
    """A section as YAML data with units; keys that are not set and need not be are left out."""
    content: dict[str, Any] = {}
    for name, field in type(part).model_fields.items():
        value, reader = getattr(part, name), reader_of(field)
        if reader is not None:
            if value is not None or getattr(reader, "none", False):
                content[field.alias] = reader.write(value)
        elif value is None:
            continue
        elif isinstance(value, tuple):
            content[field.alias] = [_plain(item) for item in value]
        else:
            content[field.alias] = _plain(value) if isinstance(value, Part) else value
    return content


def _path(keys: Sequence[str | int]) -> tuple[str | int, ...]:
    words = [word for key in keys for word in (key.split(".") if isinstance(key, str) else [key])]
    return tuple(
        int(word) if isinstance(word, str) and word.isdecimal() else word for word in words
    )

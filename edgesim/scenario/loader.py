"""A scenario: from a YAML file with units to a checked, immutable object in SI.

`load` reads one scheme, `expand` all schemes of a file. Keys and defaults: schema.py and
network_schema.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, ValidationInfo, model_validator

from edgesim.errors import COMMAND_LINE, ScenarioError
from edgesim.scenario.base_file import read_with_base
from edgesim.scenario.checks.section_checks import check_sections
from edgesim.scenario.documents.document import MISSING, Document, KeyPath, key_path
from edgesim.scenario.documents.scalars import write_text
from edgesim.scenario.overrides import (
    Override,
    all_schemes,
    parse_overrides,
    resolve,
    scheme_labels,
)
from edgesim.scenario.per_device_values import MethodSpec
from edgesim.scenario.radio.fidelity import with_rung
from edgesim.scenario.radio.own_loss_schema import written_key
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import Section, fields_of, is_written
from edgesim.scenario.validation import validated

_OF_SCHEMES = ("schemes", "scheme", "scheme_position")
_NOT_IN_DIGEST = ("base", "name", "seed", *_OF_SCHEMES, "sweep", "report", "provenance")
_NOT_RESOLVED = ("base", "schemes", "sweep", "provenance")


class Scenario(ScenarioKeys):
    """One checked scenario in SI units, such as ``scenario.network.bandwidth_hz``.

    folder: where the file lies; paths in it are relative to this.
    """

    _document: Document = PrivateAttr(default_factory=lambda: Document({}))
    _folder: Path = PrivateAttr(default_factory=Path)

    @model_validator(mode="after")
    def _finish(self, info: ValidationInfo) -> Scenario:
        check_sections(self)
        given = info.context or {}
        self._document = given.get("document", self._document)
        self._folder = given.get("folder", self._folder)
        return self

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def label(self) -> str:
        """What a run is called among others: the scheme's label, or its method."""
        return self.scheme or self.learning.method.name

    @property
    def device_count(self) -> int:
        """K, the devices of all classes together."""
        return sum(each.count for each in self.devices)

    @property
    def method_rounds(self) -> int:
        """Rounds that the method sees: with tiers those of every edge, kappa_2 in each."""
        return self.rounds * (self.tiers.local_rounds if self.tiers else 1)

    def where(self, *keys: str | int) -> str:
        """Where a key was set: ``file.yaml:14`` or ``command line``; keys may be dotted."""
        return self._document.place_of(_path(keys))

    def writes(self, key: str) -> bool:
        """Is a key, dotted, written: is its value neither a default nor that of a rung?"""
        return self._document.find(_path((key,))) is not MISSING

    def changes(self) -> dict[str, str]:
        """Keys that the command line has set -> their values as texts; without the label."""
        return {
            ".".join(map(str, path)): str(value)
            for path, value in _leaves(self._document.tree, ())
            if self._document.places.get(path) == COMMAND_LINE and path[0] not in _OF_SCHEMES
        }

    def error(self, key: str | KeyPath, problem: str) -> ScenarioError:
        """The error ``file.yaml:14: <key> <problem>``.

        Args:
            key: dotted, or its path.
            problem: begins with a verb, such as ``is -1; ...``.
        """
        path = _path(key if isinstance(key, tuple) else (key,))
        return self._document.error(written_key(self._document.tree, path), problem)

    def digest(self, sections: Sequence[str] | None = None) -> str:
        """SHA-256 [64 hex digits] of all that shapes a result.

        The seed, which stands beside it in the name of a run's folder, the name, the scheme's
        label and position, a sweep, what a report compares with and the provenance do not count.

        Args:
            sections: only these count, such as learning.
        """
        every = {key: value for key, value in _plain(self).items() if key not in _NOT_IN_DIGEST}
        content = every if sections is None else {key: every[key] for key in sections}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def with_method(self, params: dict[str, Any]) -> Scenario:
        """The same scenario with these parameters of its method in place of its own."""
        return self.with_keys("learning", method=MethodSpec(self.learning.method.name, params))

    def with_keys(self, section: str, **values: Any) -> Scenario:
        """The same scenario with other values of some keys of a section."""
        changed = getattr(self, section).model_copy(update=values)
        return self.model_copy(update={section: changed})

    def with_rounds(self, rounds: int) -> Scenario:
        """The same scenario with another number of rounds."""
        return self.model_copy(update={"rounds": rounds})

    def to_yaml(self, provenance: dict[str, Any] | None = None, seed: int | None = None) -> str:
        """Every key with its value and unit; `load` reads it back to the same digest.

        Args:
            provenance: written under that key, for the record.
            seed: the one used, where it was not the scenario's.
        """
        whole = _with_what_a_rung_would_set(_plain(self), _plain(self, written_only=False))
        content = {key: value for key, value in whole.items() if key not in _NOT_RESOLVED}
        content |= {} if seed is None else {"seed": seed}
        content |= {} if provenance is None else {"provenance": provenance}
        return write_text(content)

    def report_yaml(self) -> str:
        """The section report as `to_yaml` writes it; "" where there is none."""
        return "" if self.report is None else write_text({"report": _plain(self.report)})


def load(
    path: str | Path, overrides: str | Sequence[str] = (), label: str | None = None
) -> Scenario:
    """Read one scenario.

    Args:
        path: YAML file.
        overrides: ``key=value`` texts, or one; they win over everything in the file.
        label: which entry of the file's ``schemes``; None takes the file without them, with a
            warning where it has some and ``~schemes`` does not stand among the overrides.

    Raises:
        ScenarioError: the first thing that is wrong, in one sentence.
    """
    if not isinstance(path, str | os.PathLike):
        problem = f"{type(path).__name__} is no path; give that of a scenario file, and changes of"
        raise ScenarioError(f"{problem} it as overrides, key=value")
    document, folder = read_with_base(Path(path))
    changes = parse_overrides(overrides)
    labels = scheme_labels(document, changes)
    if label is None and labels != [None]:
        known = ", ".join(map(str, labels))
        problem = f"{path} is taken without the changes of its schemes ({known})"
        cure = 'give the label of one, or "~schemes" among the overrides'
        warnings.warn(f"{problem}; {cure}", stacklevel=2)
    return scheme_of_document(document, changes, folder, label)


def expand(
    path: str | Path, overrides: str | Sequence[str] = (), only: Collection[str] = ()
) -> list[tuple[str | None, Scenario]]:
    """All schemes of a file as (label, scenario), in its order; errors as `load`.

    A file without schemes is one scheme, whose label is the file's own, or None.

    Args:
        path: as of `load`.
        overrides: as of `load`.
        only: labels of the schemes that are wanted; empty: all.
    """
    changes = parse_overrides(overrides)
    document, folder = read_with_base(Path(path))
    schemes = [validated(Scenario, each, folder) for each in all_schemes(document, changes, only)]
    return [(scenario.scheme, scenario) for scenario in schemes]


def labels_in(path: str | Path, overrides: str | Sequence[str] = ()) -> list[str | None]:
    """The labels of the file's schemes, in its order; one None where it has no schemes."""
    return scheme_labels(read_with_base(Path(path))[0], parse_overrides(overrides))


def scheme_of_document(
    document: Document, overrides: Sequence[Override], folder: Path, label: str | None
) -> Scenario:
    """`load` of a file that is read already, with overrides that are parsed already."""
    return validated(Scenario, resolve(document, overrides, label), folder)


def _with_what_a_rung_would_set(content: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """A scenario as YAML data that reads back to itself: a rung gives its defaults once more.

    Args:
        content: of `_plain`.
        whole: the same with every key.
    """

    def add(own: Any, filled: Any, every: Any) -> Any:
        if not isinstance(own, dict) or not isinstance(filled, dict):
            return own
        missing = {key: every.get(key) for key in filled if key not in own}
        return {key: add(own[key], filled[key], every.get(key)) for key in own} | missing

    found: dict[str, Any] = add(content, with_rung(content), whole)
    return found


def _plain(section: Section, written_only: bool = True) -> dict[str, Any]:
    """A section as YAML data with units; keys that are not set and need not be are left out.

    Args:
        section: to write.
        written_only: keys are left out, too, that were added later and have their defaults.
    """
    content: dict[str, Any] = {}
    for name, field, reader in fields_of(type(section)):
        value, key = getattr(section, name), str(field.alias)
        if written_only and not is_written(field, value):
            continue
        if reader is not None:
            if value is not None or reader.none:
                content[key] = reader.write(value)
        elif isinstance(value, Section):
            content[key] = _plain(value, written_only)
        elif isinstance(value, tuple):
            content[key] = [_plain(item, written_only) for item in value]
        elif value is not None:
            content[key] = value
    return content


def _leaves(tree: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Values by their paths: words, numbers, and lists that hold no sections."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        for i, item in enumerate(tree):
            yield from _leaves(item, (*path, i))
    else:
        yield path, tree


def _path(keys: Sequence[str | int]) -> KeyPath:
    parts = (key_path(key) if isinstance(key, str) else (key,) for key in keys)
    return tuple(word for part in parts for word in part)

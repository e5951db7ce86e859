"""Changes to a document before it is checked: a scheme of the file, ``key=value`` texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from edgesim.errors import COMMAND_LINE, ScenarioError, shorten
from edgesim.scenario.checks.reported_schemes import check_reported_schemes
from edgesim.scenario.documents.document import BELOW, Document, KeyPath, key_path, kind_of_word
from edgesim.scenario.documents.layers import changes_kind, laid_above, lay_over, layers
from edgesim.scenario.documents.yaml_text import read_text
from edgesim.scenario.fields import LABEL

_KEY = re.compile(r"[\w-]+(\.[\w-]+)*|schemes(\.[\w -]+)+")  # labels may have blanks
POSITION = "scheme_position"
OF_FILES = {  # keys of a file alone: what to do instead in a scheme or an override
    "base": "it is a key of a file; write one that has it",
    "schemes": "a scheme has none of its own; write them beside it",
}
REMOVED = object()  # the tree of an override that removes its key


class Override(NamedTuple):
    """A value for the key at a path; a number in the path is a position in a list.

    A value whose tree is `REMOVED` removes the key, so that its default holds.
    """

    path: KeyPath
    value: Document

    @property
    def removes(self) -> bool:
        return self.value.tree is REMOVED


def parse_overrides(given: str | Iterable[str]) -> list[Override]:
    """``key=value`` texts, or one.

    Raises:
        ScenarioError: they are neither, or one of them is no override.
    """
    texts = [given] if isinstance(given, str) else given
    if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        problem = f"{type(given).__name__} is no list of overrides"
        raise ScenarioError(
            f'{COMMAND_LINE}: {problem}; write key=value texts, as in ["rounds=10"]'
        )
    return [parse_override(str(text)) for text in texts]


def parse_override(text: str, place: str = COMMAND_LINE) -> Override:
    """``a.b.c=value``, or ``~a.b.c`` to remove a key, as in Hydra.

    Args:
        text: of the command line, or of a sweep block.
        place: where it was written.

    Raises:
        ScenarioError: the text is no override, or its value is no YAML.
    """
    key, equals, value = text.partition("=")
    removed = key.strip().startswith("~")
    if removed and equals:
        problem = f"{key.strip()} removes a key and takes no value; write {key.strip()} alone"
        raise ScenarioError(f"{place}: {problem}")
    name = key.strip().removeprefix("~")
    if not (equals or removed) or not _KEY.fullmatch(name):
        problem = "is not an override; write key=value, for instance rounds=10, or ~key"
        raise ScenarioError(f'{place}: "{text[:60]}" {problem}')
    if removed:
        return Override(key_path(name), Document(REMOVED, {(): place}))
    if not value.strip():
        raise ScenarioError(f"{place}: {key} has no value; write {key}=value")
    read = read_text(value, f"{place}: {key}", numbered=False)
    value_read = Document(read.tree, dict.fromkeys(read.places, place))
    return Override(key_path(key.strip()), value_read)


def scheme_labels(document: Document, overrides: Sequence[Override] = ()) -> list[str | None]:
    """The labels of a file's schemes, in its order; one None where it has no schemes.

    Raises:
        ScenarioError: a label cannot name a folder, or a scheme is no mapping.
    """
    document = with_overridden_schemes(document, overrides)
    if "schemes" not in document.tree:
        return [None]
    schemes = document.tree["schemes"]
    if not isinstance(schemes, dict) or not schemes:
        raise document.wrong_value(("schemes",), "; write a mapping of label: changes")
    folders: dict[str, str] = {}
    for label, changes in schemes.items():
        place = document.place_of(("schemes", label))
        same = folders.setdefault(str(label).replace(" ", "-"), label)
        if same != label:
            problem = f'the labels "{same}" and "{label}" would share a folder; rename one of them'
            raise ScenarioError(f"{place}: {problem}")
        if not LABEL.matches(label):
            problem = f"the label {shorten(label)} is not allowed; write {LABEL.looks}"
            raise ScenarioError(f"{place}: {problem}")
        if not isinstance(changes, dict | None):
            raise document.wrong_value(("schemes", label), "; write a mapping of changes")
    return list(schemes)


def resolve(
    document: Document, overrides: Sequence[Override], label: str | None = None
) -> Document:
    """One scheme of a file with the overrides, which win over everything in the file.

    Args:
        document: the file.
        overrides: in order; those of ``schemes`` come first.
        label: of the scheme; None: the file as if it had no schemes.

    Raises:
        ScenarioError: there is no such scheme, also none that the report names; a key leads
            nowhere, or sets the scheme's place.
    """
    for override in overrides:
        if override.path in ((POSITION,), ("base",)):
            raise _unknown(str(override.path[0]), override.value.place_of(()))
        if override.path == ("scheme",) and label is not None:
            problem = f'scheme is a label of the file, such as "{label}"; rename it there'
            raise ScenarioError(f"{override.value.place_of(())}: {problem}")
    changed = with_overridden_schemes(document, overrides)
    if label is not None:
        labels = scheme_labels(changed)
        if label not in labels:
            raise _no_such_scheme(changed.place_of(("schemes",)), label, labels)
        patch = changed.subtree(("schemes", label))
        changed.remove(("schemes",), patch.place_of(()))
        for layer in layers(patch):
            for key in layer.tree:
                if (word := key.split(".")[0]) in (POSITION, *OF_FILES):
                    raise _unknown(word, layer.place_of((key,)))
            lay_over(changed, layer)
        changed.put(("scheme",), Document(label, {(): patch.place_of(())}))
        position = Document(labels.index(label), {(): patch.place_of(())})
        changed.put((POSITION,), position)
    _apply(changed, [override for override in overrides if override.path[0] != "schemes"])
    if label is not None:
        check_reported_schemes(changed, document.find(("schemes",)), labels)
    return changed


def _unknown(key: str, place: str) -> ScenarioError:
    hint = "the place of a scheme is that in its file" if key == POSITION else OF_FILES[key]
    return ScenarioError(f"{place}: the key {key} is unknown here; {hint}")


def all_schemes(
    document: Document, overrides: Sequence[Override], only: Collection[str] = ()
) -> Iterator[Document]:
    """Each scheme of a file by `resolve`, in its order; a file without schemes is one.

    Args:
        document: the file.
        overrides: of all schemes.
        only: labels of the schemes that are wanted; empty: all.
    """
    for label in scheme_labels(document, overrides):
        if label is None or not only or label in only:
            yield resolve(document, overrides, label)


def with_overridden_schemes(document: Document, overrides: Sequence[Override]) -> Document:
    """A copy with the overrides whose keys begin with ``schemes``.

    Those of one scheme are laid over it together, as a scheme of a file is over one of its base.
    """
    changed, laid = document.copy(), set()
    for each in overrides:
        if each.path[0] != "schemes":
            continue
        scheme, key = _in_a_scheme(each, changed)
        if not key:
            _apply(changed, [each._replace(path=scheme)])
            laid.discard(scheme)
            continue
        if each.removes or isinstance(each.value.tree, dict):
            _remove_from_scheme(changed, scheme, key, each)
        if each.removes:
            continue
        around = {".".join(map(str, key[:size])) for size in range(1, len(key))}
        # what lies within a value that was just given is laid over it, not put beside it
        if scheme not in laid or around & set(changed.find(scheme)):
            if not isinstance(changed.find(scheme), dict | None):
                raise changed.wrong_value(scheme, "; write a mapping of changes")
            changed.put(scheme, laid_above(changed.subtree(scheme), Document({})))
            laid.add(scheme)
        changed.put((*scheme, ".".join(map(str, key))), each.value)
    return changed


def _remove_from_scheme(
    document: Document, scheme: KeyPath, key: KeyPath, override: Override
) -> None:
    """Remove a key and all below it, however the scheme and those that it is laid over write it."""
    place = override.value.place_of(())
    found = list(_spellings(document.find(scheme), key))
    for spelling in found:
        document.remove((*scheme, *spelling), place)
    if override.removes and not found:
        document.remove((*scheme, *key), place)  # raises, as there is none


def _spellings(tree: Any, key: KeyPath) -> Iterator[KeyPath]:
    """The paths in a scheme of what stands at a key or below it; its own keys may be dotted."""
    for each, value in tree.items() if isinstance(tree, dict) else ():
        words = () if each == BELOW else key_path(str(each))
        if words[: len(key)] == key:
            yield (each,)
        elif key[: len(words)] == words and isinstance(value, dict):
            found = list(_spellings(value, key[len(words) :]))
            whole = words and len(found) == len(value)  # an empty mapping would replace a list
            yield from [(each,)] if whole else ((each, *rest) for rest in found)
        elif key[: len(words)] == words and isinstance(value, list):
            place, inside = key[len(words)], key[len(words) + 1 :]
            if inside and isinstance(place, int) and place < len(value):
                yield from ((each, place, *rest) for rest in _spellings(value[place], inside))


def _in_a_scheme(override: Override, document: Document) -> tuple[KeyPath, KeyPath]:
    """The paths of ``schemes.v1.5`` and of ``rounds`` where v1.5 is a label: the longest that fits.

    The second one is empty where the whole scheme is meant.
    """
    path, schemes = override.path, document.tree.get("schemes")
    labels = list(schemes) if isinstance(schemes, dict) else []
    words = [str(word) for word in path[1:]]
    size = next((n for n in range(len(words), 0, -1) if ".".join(words[:n]) in labels), None)
    if size is None:
        if len(path) > 2 and not override.removes:
            raise _no_such_scheme(override.value.place_of(()), words[0], labels)
        return path, ()
    return ("schemes", ".".join(words[:size])), path[1 + size :]


def _no_such_scheme(place: str, label: str, labels: Sequence[str | None]) -> ScenarioError:
    known = ", ".join(filter(None, labels)) or "no schemes at all"
    return ScenarioError(f'{place}: there is no scheme "{label}"; the file has {known}')


def _apply(document: Document, overrides: Sequence[Override]) -> None:
    """Set each override exactly as given, in order.

    One that changes the kind of a section, such as learning.method.name, starts that section
    afresh; overrides of its other keys hold wherever they stand.
    """
    for i, override in enumerate(overrides):
        path, part = override
        kind = kind_of_word(path, part.tree)
        section = path if kind else path[:-1]
        if override.removes:
            document.remove(path, part.place_of(()))
            continue
        if kind or changes_kind(document, path, part):
            document.put(section, Document({}, {(): part.place_of(())}))
            for earlier, value in overrides[:i]:
                below = len(earlier) > len(section) and earlier[: len(section)] == section
                if below and value.tree is not REMOVED:
                    document.put(earlier, value)
        others = kind and document.find(section)
        document.put((*path, kind) if kind and others else path, part)

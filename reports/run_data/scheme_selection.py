"""Schemes chosen, ordered and named for a report, and the points of a sweep that it shows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from edgesim.errors import ResultsError, shorten
from edgesim.results.flat_scenario import NONE, FlatScenario, possible_units
from edgesim.scenario.units import UnitError, in_unit, parse
from reports.run_data.scheme_grouping import Scheme, group_runs, swept_keys, tied_keys
from reports.run_data.swept_keys import SweptKey, keys_of_words, short_names


class UnfitOptionError(ResultsError):
    """An option of a report does not fit the results, or another option.

    Args:
        option: key of the report.
        problem: what is wrong with it, to follow the key.
    """

    place = ""  # where the option was written, as far as known

    def __init__(self, option: str, problem: str):
        self.option = option
        super().__init__(f"{option} {problem}")

    def __str__(self) -> str:
        return f"{self.place}: {self.args[0]}" if self.place else f"The report's {self.args[0]}"


class AbsentNameError(UnfitOptionError):
    """An option of a report names what the results do not have.

    Args:
        option: key of the report.
        names: what it names in vain.
        known: what it could name.
    """

    def __init__(self, option: str, names: Sequence[str], known: Sequence[str]):
        near = difflib.get_close_matches(names[0], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known) or 'none'}."
        key, _, value = names[0].partition(":")
        if value and not value.startswith(" "):  # to YAML one word
            hint = f"write a blank after the colon: {{{key}: {value}}}"
        shown = ", ".join(map(shorten, names))
        super().__init__(option, f"names {shown}, which these results do not have; {hint}")


def named_schemes(schemes: list[Scheme], names: Mapping[str, str]) -> list[Scheme]:
    """The schemes of some labels, in their order, under display names.

    Args:
        schemes: all that there are.
        names: label of a scheme, or of a series of a sweep -> display name; empty: all as they are.

    Raises:
        AbsentNameError: a label that no scheme has.
        UnfitOptionError: a scheme that is named by itself and with its series.
    """
    if not names:
        return schemes
    chosen, named = [], set[Scheme]()
    for label, name in names.items():
        own = [scheme for scheme in schemes if label in (scheme.label, scheme.series)]
        if not own:
            known = dict.fromkeys(x for scheme in schemes for x in (scheme.series, scheme.label))
            raise AbsentNameError("schemes", [label], list(known))
        if again := [scheme.label for scheme in own if scheme in named]:
            problem = f"names {again[0]} twice, by itself and with its series; name it once."
            raise UnfitOptionError("schemes", problem)
        named |= set(own)
        chosen += [_renamed(scheme, label, name) for scheme in own]
    return chosen


def _renamed(scheme: Scheme, label: str, name: str) -> Scheme:
    if label == scheme.label:
        return replace(scheme, label=name, series=name)
    point = f" ({scheme.point})" if scheme.point else ""
    return replace(scheme, label=f"{name}{point}", series=name)


def sliced_schemes(schemes: list[Scheme], at: Mapping[str, str]) -> list[Scheme]:
    """The schemes whose swept keys have some values, and those that do not have the key.

    Args:
        schemes: all of a sweep.
        at: swept key, in full or as the figures name it -> value, with or without its unit; of
            words as it is written.

    Raises:
        AbsentNameError: a key that was not swept, or a value that no run has.
    """
    for name, text in at.items():
        keys = swept_keys(schemes, apart=True)
        key = find_key("slice", name, [*keys, *word_keys(schemes)])
        value = _number(key, text) if key.numbers and text != NONE else text
        of = [key.value_in(scheme.values) for scheme in schemes]
        if value is None or value not in of:
            known = [key.text(each) for each in sorted(x for x in of if isinstance(x, float))]
            known += [f"{key.name} {each}" for each in of if isinstance(each, str)]
            raise AbsentNameError("slice", [f"{name} {text}"], list(dict.fromkeys(known)))
        schemes = [scheme for scheme, own in zip(schemes, of, strict=True) if own in (value, None)]
    if not at:
        return schemes
    # named anew, as what they have in common no longer tells them apart
    runs = [run for scheme in schemes for run in scheme.runs]
    swept = {run.folder.resolve(): s.listed_by for s in schemes for run in s.runs if s.listed_by}
    return group_runs(runs, [run.folder.resolve() for run in runs], schemes[0].linked, swept)


def word_keys(schemes: Sequence[Scheme]) -> list[SweptKey]:
    """The keys without an axis in which schemes of one label differ, such as a solver."""
    flats: dict[str, list[FlatScenario]] = {}
    for scheme in schemes:
        flats.setdefault(str(scheme.first.summary["scheme"]), []).append(scheme.values)
    every = [scheme.values for scheme in schemes]
    words = dict.fromkeys(key for own in flats.values() for key in keys_of_words(own, every))
    names = short_names(words | dict.fromkeys(key for s in schemes for key in s.numbers))
    return [SweptKey(key, names[key], "", {}) for key in words]


def find_key(option: str, name: str, keys: Sequence[SweptKey]) -> SweptKey:
    """A swept key by its full name, or as the figures call it.

    Raises:
        AbsentNameError: no such key was swept.
    """
    for key in keys:
        if name in (key.key, key.name, key.name.replace(" ", "_")):
            return key
    raise AbsentNameError(option, [name], [key.key for key in keys])


def axis_along(
    schemes: list[Scheme], keys: Sequence[SweptKey], name: str
) -> tuple[SweptKey, list[SweptKey]]:
    """The key of the option ``along`` and the keys of the sweep, as its axis needs them.

    Args:
        schemes: all of the sweep.
        keys: in which they differ, apart.
        name: of one of them.

    Returns:
        The key, which names those that change along with it, and the keys without these, it first.

    Raises:
        AbsentNameError: no such key was swept.
        UnfitOptionError: its values are words.
    """
    along = find_key("along", name, [*keys, *word_keys(schemes)])
    if along not in keys:
        known = ", ".join(key.key for key in keys) or "none"
        problem = f"names {along.key}, whose values are no numbers of an axis; there are {known}."
        raise UnfitOptionError("along", problem)
    tied = tied_keys(schemes, keys, along)
    others = [key for key in keys if key is not along and key not in tied]
    along = replace(along, tied=tuple(key.name for key in tied))
    return along, [along, *others]


def _number(key: SweptKey, text: str) -> float | None:
    """A value in the unit of the key's axis; None where it cannot be read."""
    if text in key.numbers:
        return key.numbers[text]
    try:
        return float(text)
    except ValueError:
        pass
    for unit in possible_units(key.key):
        with suppress(UnitError, KeyError):
            return in_unit(parse(text, unit), key.unit, unit)
    return None

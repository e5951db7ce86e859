"""A sweep before it runs: every combination of values, schemes and seeds as a checked point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from math import prod
from pathlib import Path

from edgesim.errors import COMMAND_LINE, RunError, ScenarioError
from edgesim.scenario.base_file import base_of, read_with_base
from edgesim.scenario.documents.document import Document
from edgesim.scenario.loader import Scenario, scheme_of_document
from edgesim.scenario.overrides import Override, scheme_labels, with_overridden_schemes
from edgesim.sweep.sweep_point import SweepPoint, check_point
from edgesim.sweep.swept_axes import (
    METHOD_KEY,
    axes_of_schemes,
    gather,
    hidden_but_for_one,
    names_method,
    refuse_parts,
    sweep_block,
    varies,
    with_seeds,
)
from edgesim.sweep.values import SweepAxis, SweptValue, axis_from_text

MAX_POINTS = 100_000


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep varies, and its points.

    Args:
        name: of the scenario.
        source: its file.
        axes: key -> the values that points have, as texts, of the keys that vary.
        linked: the keys of each axis that changes several together.
        points: in the order in which they are listed.
        changes: key -> its one value as text, of the command line, or of the sweep of the
            base; None: it removes the key.
        notes: what the user should know before the sweep starts.
    """

    name: str
    source: Path
    axes: dict[str, list[str]]
    linked: list[tuple[str, ...]]
    points: list[SweepPoint]
    changes: dict[str, str | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def plan_sweep(
    path: Path,
    texts: Sequence[str] = (),
    seed_text: str | None = None,
    only: Sequence[str] = (),
    data: str | None = None,
    allow_code: bool = False,
) -> SweepPlan:
    """Every combination of the values, checked as `edgesim run` would; nothing is run.

    Args:
        path: of the scenario.
        texts: ``key=values`` of the command line; they win over the file's sweep block.
        seed_text: such as 0-4; None: those of the file.
        only: labels of schemes; empty: all.
        data: folder of the data files; None: EDGESIM_DATA.
        allow_code: may methods and solvers come from ./file.py:name?

    Raises:
        ScenarioError, RunError: the first point that is wrong.
    """
    document, folder = read_with_base(path)
    texts = with_seeds(texts, seed_text)
    axes, seeds = gather(document, texts)
    alone = [value.override for axis in axes if not varies(axis) for value in axis.rows[0]]
    own = axes_of_schemes(with_overridden_schemes(document, alone), texts)
    choice = SchemeChoice(path, set(only))
    for label, further in own.items():
        refuse_parts(axes, str(label), further)
    points = [
        check_point(scenario, values, data, allow_code)
        for scenario, values in combine(document, folder, axes, own, seeds, choice)
    ]
    _refuse_equal_points(points)
    shown: dict[str, list[str]] = {}
    for key, text in (value for point in points for value in point.values.items()):
        shown.setdefault(key, [])
        shown[key] += [text] if text not in shown[key] else []
    every = [*axes, *chain(*own.values())]
    linked = [axis.keys for axis in every if varies(axis) and len(axis.keys) > 1]
    notes = []
    if choice.wanted:
        labels = ", ".join(dict.fromkeys(point.label for point in points))
        notes.append(f"{METHOD_KEY} chooses among the schemes of {path}: {labels}")
    given = {key for text in texts for key in axis_from_text(text).keys}
    # what a file over a base sweeps goes with all that it lays over it
    given |= _swept_in(read_with_base(base_of(path))[0])
    common = _single_values(axes, given)
    of_schemes = {}
    for label, each in own.items():
        inside = {key.removeprefix(f"schemes.{label}.") for key in given}
        of_schemes[label] = _single_values(each, inside)
    hidden = {key: text for key, text in common.items() if key in {*chain(*of_schemes.values())}}
    changes = {key: text for key, text in common.items() if key not in hidden} | {
        f"schemes.{label}.{key}": text
        for label, mine in of_schemes.items()
        for key, text in (hidden | mine).items()
    }
    return SweepPlan(
        points[0].scenario.name, path, shown, list(dict.fromkeys(linked)), points, changes, notes
    )


def _swept_in(document: Document) -> set[str]:
    """The keys of the sweep blocks of a file and of its schemes."""
    labels = [None, *(document.tree.get("schemes") or {})]
    names = (name for label in labels for name in sweep_block(document, label).tree)
    return {key for name in names for key in name.split(":")}


def _single_values(axes: Sequence[SweepAxis], keys: set[str]) -> dict[str, str | None]:
    """Key -> its text, of the axes with some of these keys that do not vary.

    None: it removes the key.
    """
    alone = [axis for axis in axes if not varies(axis) and keys & set(axis.keys)]
    return {
        value.key: None if value.override.removes else value.text
        for axis in alone
        for value in axis.rows[0]
    }


def combine(
    document: Document,
    folder: Path,
    axes: Sequence[SweepAxis],
    own: Mapping[str | None, Sequence[SweepAxis]],
    seeds: Sequence[int] | None,
    choice: SchemeChoice,
) -> Iterator[tuple[Scenario, dict[str, str]]]:
    """Scenarios with the values that were swept; within them seeds, within these the schemes.

    Where the file has schemes, a swept method name chooses among them: a scheme says what the
    parameters of its method are.

    Args:
        document: the file.
        folder: to which paths in it are relative.
        axes: of all schemes.
        own: label -> axes of that scheme, which win over those of all.
        seeds: of every combination; None: the file's one.
        choice: of the schemes.
    """
    most = max((prod(len(axis.rows) for axis in each) for each in own.values()), default=1)
    count = prod(len(axis.rows) for axis in axes) * len(seeds or (0,)) * most
    if count > MAX_POINTS:
        problem = f"the sweep has {count} points and more; allowed are {MAX_POINTS}"
        raise ScenarioError(f"{COMMAND_LINE}: {problem}")
    varying = {key for axis in (*axes, *chain(*own.values())) if varies(axis) for key in axis.keys}
    seeded = [[]] if seeds is None else [[_seed_override(seed)] for seed in seeds]
    for rows in product(*(axis.rows for axis in axes)):
        common = [value for row in rows for value in row]
        labels = scheme_labels(document, [value.override for value in common])
        method = None
        if labels != [None]:
            method = next(filter(names_method, common), None)
        changes = [value.override for value in common if value is not method]
        for seed in seeded:
            for label in labels:
                further = own.get(label, ())
                if not choice.meets(label) or hidden_but_for_one(axes, rows, further):
                    continue
                for own_rows in product(*(axis.rows for axis in further)):
                    mine = [value for row in own_rows for value in row]
                    overrides = [*changes, *(value.override for value in mine), *seed]
                    scenario = scheme_of_document(document, overrides, folder, label)
                    swept = {v.key: v.text for v in (*common, *mine) if v.key in varying}
                    if choice.takes(scenario, method):
                        yield scenario, swept
    choice.refuse_unused()


def _seed_override(seed: int) -> Override:
    return Override(("seed",), Document(seed, {(): COMMAND_LINE}))


@dataclass
class SchemeChoice:
    """Which schemes of a file are run: those of ``only``, with the methods that are swept.

    Args:
        path: of the file.
        only: labels; empty: all.
        methods: label -> method of the schemes that were met.
        wanted: swept method -> does a scheme have it?
    """

    path: Path
    only: set[str]
    methods: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, bool] = field(default_factory=dict)

    def meets(self, label: str | None) -> bool:
        """Note a label of the file; may its scheme be run?"""
        if label is None:
            return True
        self.methods.setdefault(label, "")
        return not self.only or label in self.only

    def takes(self, scenario: Scenario, method: SweptValue | None) -> bool:
        """Is this scheme run with this swept method (None: any)?"""
        name = scenario.learning.method.name
        self.methods[scenario.scheme or ""] = name
        chosen = not self.only or scenario.scheme in self.only
        if method is None:
            return chosen
        wanted = str(method.override.value.tree)
        fits = chosen and name == wanted
        self.wanted[wanted] = self.wanted.get(wanted, False) or fits
        return fits

    def refuse_unused(self) -> None:
        """Refuse a label that is no scheme, and a method that no scheme has."""
        labels = ", ".join(filter(None, self.methods)) or "no schemes"
        for label in sorted(self.only - set(self.methods)):
            problem = f'{self.path} has no scheme "{label}"; it has {labels}'
            raise ScenarioError(f"{COMMAND_LINE}: {problem}")
        chosen = [label for label in self.methods if not self.only or label in self.only]
        known = "; ".join(f"{label}: {self.methods[label]}" for label in chosen)
        for name in (name for name, found in self.wanted.items() if not found):
            problem = f"which no scheme of {self.path} has ({known}); add one for it"
            raise ScenarioError(f"{COMMAND_LINE}: {METHOD_KEY} is {name}, {problem}")


def _refuse_equal_points(points: Sequence[SweepPoint]) -> None:
    if not points:
        problem = f"the sweep has no points; --only and {METHOD_KEY} leave none"
        raise ScenarioError(f"{COMMAND_LINE}: {problem}")
    known: dict[str, SweepPoint] = {}
    for point in points:
        same = known.setdefault(point.id, point)
        if same is not point:
            names = f'"{same.name}" and "{point.name}"'
            raise RunError(f"the points {names} are the same run; {_cure(same, point)}")


def _cure(one: SweepPoint, other: SweepPoint) -> str:
    """What to do about two points that are one run: of which key, if it is one in a scheme."""
    differing = (key for key, text in other.values.items() if one.values.get(key) != text)
    of_a_scheme = next((key for key in differing if key.startswith("schemes.")), None)
    if of_a_scheme is None:
        return "keep one of the values"
    return (
        f"{of_a_scheme} changes nothing there: its values are equal, it is of another scheme, or "
        "this one's own sweep sets it too; keep one of equal values, and write others in the sweep "
        "block of their scheme"
    )

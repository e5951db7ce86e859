"""A sweep before it runs: every combination of values, schemes and seeds as a checked point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path

from edgesim.errors import COMMAND_LINE, RunError, ScenarioError
from edgesim.scenario.loader import Scenario, expand_document
from edgesim.scenario.overrides import Override
from edgesim.scenario.yaml_locations import Document, read_file
from edgesim.sweep.sweep_point import SweepPoint, check_point
from edgesim.sweep.values import (
    SweepAxis,
    SweptValue,
    axis_from_block,
    axis_from_text,
    block_seeds,
    parse_seeds,
)

METHOD_KEY = "learning.method.name"
MAX_POINTS = 100_000


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep varies, and its points.

    Args:
        name: of the scenario.
        source: its file.
        axes: key -> its values as texts, of the keys that vary.
        points: in the order in which they are listed.
        notes: what the user should know before the sweep starts.
    """

    name: str
    source: Path
    axes: dict[str, list[str]]
    points: list[SweepPoint]
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
    document = read_file(path)
    axes, seeds = gather(document, texts, seed_text)
    points = [
        check_point(scenario, values, data, allow_code)
        for scenario, values in combine(document, path, axes, seeds, set(only))
    ]
    _refuse_equal_points(points)
    shown: dict[str, list[str]] = {}
    for value in (value for axis in axes if varies(axis) for row in axis.rows for value in row):
        shown.setdefault(value.key, [])
        shown[value.key] += [value.text] if value.text not in shown[value.key] else []
    notes = []
    if "schemes" in document.tree and METHOD_KEY in shown:
        labels = ", ".join(dict.fromkeys(point.label for point in points))
        notes.append(f"{METHOD_KEY} chooses among the schemes of {path}: {labels}")
    return SweepPlan(points[0].scenario.name, path, shown, points, notes)


def varies(axis: SweepAxis) -> bool:
    """Several values, or a choice among schemes? One value alone is a change of the scenario."""
    return len(axis.rows) > 1 or METHOD_KEY in axis.keys


def gather(
    document: Document, texts: Sequence[str], seed_text: str | None
) -> tuple[list[SweepAxis], tuple[int, ...] | None]:
    """Axes and seeds of the command line, and those of the sweep block that it leaves."""
    axes = [axis_from_text(text) for text in texts]
    replaced = {key for axis in axes for key in axis.keys}
    block = document.subtree(("sweep",)) if document.tree.get("sweep") else Document({})
    if not isinstance(block.tree, dict):
        example = "write for instance sweep: {rounds: [10, 20]}"
        raise ScenarioError(f"{block.place_of(())}: sweep is no mapping; {example}")
    seeds = block_seeds(block.subtree(("seeds",))) if "seeds" in block.tree else None
    inner = [axis_from_block(key, block.subtree((key,))) for key in block.tree if key != "seeds"]
    axes = [axis for axis in inner if not replaced & set(axis.keys)] + axes
    for key, count in Counter(key for axis in axes for key in axis.keys).items():
        if count > 1:
            problem = f"{key} is given twice; write its values in one list"
            raise ScenarioError(f"{COMMAND_LINE}: {problem}")
        if key.split(".")[0] in ("sweep", "scheme", "provenance", "name"):
            raise ScenarioError(f"{COMMAND_LINE}: {key} cannot be swept; --only chooses schemes")
    own = next((axis for axis in axes if axis.keys == ("seed",)), None)
    if own is None:
        return axes, seeds if seed_text is None else parse_seeds(seed_text)
    if seed_text is not None:
        raise ScenarioError(f"{COMMAND_LINE}: seed and --seeds are both given; keep --seeds")
    # seed=0,1 is another way to write --seeds 0,1
    texts = [row[0].text for row in own.rows]
    return [axis for axis in axes if axis is not own], parse_seeds(",".join(texts))


def combine(
    document: Document,
    path: Path,
    axes: Sequence[SweepAxis],
    seeds: Sequence[int] | None,
    only: set[str],
) -> Iterator[tuple[Scenario, dict[str, str]]]:
    """Scenarios with the values that were swept, seeds innermost.

    Where the file has schemes, a swept method name chooses among them: a scheme says what the
    parameters of its method are.
    """
    count = prod(len(axis.rows) for axis in axes) * len(seeds or (0,))
    if count > MAX_POINTS:
        problem = f"the sweep has {count} points and more; allowed are {MAX_POINTS}"
        raise ScenarioError(f"{COMMAND_LINE}: {problem}")
    choice = SchemeChoice(path, only)
    varying = {key for axis in axes if varies(axis) for key in axis.keys}
    seeded = [[]] if seeds is None else [[_seed_override(seed)] for seed in seeds]
    for rows in product(*(axis.rows for axis in axes)):
        values = [value for row in rows for value in row]
        method = None
        if "schemes" in document.tree:
            method = next((value for value in values if value.key == METHOD_KEY), None)
        changes = [value.override for value in values if value is not method]
        swept = {value.key: value.text for value in values if value.key in varying}
        for seed in seeded:
            for label, scenario in expand_document(document, [*changes, *seed], path.parent):
                if choice.takes(label, scenario, method):
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

    def takes(self, label: str | None, scenario: Scenario, method: SweptValue | None) -> bool:
        """Is this scheme run with this swept method (None: any)?"""
        name = scenario.learning.method.name
        self.methods[label or ""] = name
        chosen = not self.only or label in self.only
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
            raise RunError(f"the points {names} are the same run; keep one of the values")

"""The points of a sweep: every combination of its values, of the file's schemes and of the seeds, each one checked."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import simpy

from edgesim.errors import COMMAND_LINE, RunError, ScenarioError
from edgesim.runs.fingerprint import code_digest, result_digest, training_digest
from edgesim.runs.recorder import scheme_of
from edgesim.runs.run import prepare
from edgesim.runs.setup import Setup
from edgesim.runs.user_errors import user_errors
from edgesim.scenario.loader import Scenario, expand_document
from edgesim.scenario.overrides import Override
from edgesim.scenario.yaml_locations import Document, read_file
from edgesim.sweep.values import Axis, Value, block_seeds, from_block, from_text, seeds

METHOD = "learning.method.name"
MOST = 100_000  # points


@dataclass(frozen=True)
class Effort:
    """What a round computes: FLOPs of training, in about so many SGD steps, and FLOPs of an evaluation."""

    flops: float = 0.0
    steps: float = 0.0
    evaluation: float = 0.0


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    id: hash of all that decides its results.     group: hash of what its training depends on beside the orders of a
    round (`fl.training_cache.cache`); None: it shares with nobody.     infeasible: why it cannot run at all.
    """

    id: str
    scenario: Scenario
    values: dict[str, str]
    group: str | None
    fingerprint: str
    infeasible: str | None = None
    effort: Effort = Effort()

    @property
    def label(self) -> str:
        return scheme_of(self.scenario)

    @property
    def seed(self) -> int:
        return self.scenario.seed

    @property
    def name(self) -> str:
        """``fedavg, latency_threshold=15ms, seed 0``"""
        texts = [
            f"{short}={text}"
            for short, text in zip(shortened(self.values), self.values.values(), strict=True)
        ]
        return ", ".join([self.label, *texts, f"seed {self.seed}"])


@dataclass(frozen=True)
class Plan:
    """A sweep: what varies, and its points in the order in which they are listed."""

    name: str
    source: Path
    axes: dict[str, list[str]]
    points: list[Point]
    notes: list[str] = field(default_factory=list)


def plan(
    path: Path,
    texts: Sequence[str] = (),
    seed_text: str | None = None,
    only: Sequence[str] = (),
    **given: Any,
) -> Plan:
    """Every combination of the values, checked as `edgesim run` would; nothing is run.

    Args:
        texts: ``key=values`` of the command line; they win over the file's sweep block.     only: labels of schemes.
        given: data, allow_code.
    Raises:
        ScenarioError, RunError: the first point that is wrong.
    """
    document = read_file(path)
    axes, all_seeds = gather(document, texts, seed_text)
    points = [
        examined(*one, **given) for one in combined(document, path, axes, all_seeds, set(only))
    ]
    _refuse_twins(points)
    shown: dict[str, dict[str, None]] = {}
    for value in (value for axis in axes if varies(axis) for row in axis.rows for value in row):
        shown.setdefault(value.key, {})[value.text] = None
    notes = []
    if "schemes" in document.tree and METHOD in shown:
        labels = ", ".join(dict.fromkeys(point.label for point in points))
        notes.append(f"{METHOD} chooses among the schemes of {path}: {labels}")
    return Plan(
        points[0].scenario.name,
        path,
        {key: list(texts) for key, texts in shown.items()},
        points,
        notes,
    )


def varies(axis: Axis) -> bool:
    """Has it several values, or chooses it among schemes? One value alone is a change of the scenario."""
    return len(axis.rows) > 1 or METHOD in axis.keys


def gather(
    document: Document, texts: Sequence[str], seed_text: str | None
) -> tuple[list[Axis], tuple[int, ...] | None]:
    """The axes and seeds of the command line, and those of the sweep block that it does not replace."""
    axes = [from_text(text) for text in texts]
    given = {key for axis in axes for key in axis.keys}
    block = document.subtree(("sweep",)) if document.tree.get("sweep") else Document({})
    if not isinstance(block.tree, dict):
        raise ScenarioError(
            f"{block.place_of(())}: sweep is no mapping; write for instance sweep: {{rounds: [10, 20]}}"
        )
    known = tuple(block_seeds(block.subtree(("seeds",)))) if "seeds" in block.tree else None
    inner = [from_block(name, block.subtree((name,))) for name in block.tree if name != "seeds"]
    axes = [axis for axis in inner if not given & set(axis.keys)] + axes
    for key, count in Counter(key for axis in axes for key in axis.keys).items():
        if count > 1:
            raise ScenarioError(
                f"{COMMAND_LINE}: {key} is given twice; write its values in one list"
            )
        if key.split(".")[0] in ("sweep", "scheme", "provenance", "name"):
            raise ScenarioError(f"{COMMAND_LINE}: {key} cannot be swept; --only chooses schemes")
    return _with_seeds(axes, known if seed_text is None else seeds(seed_text), seed_text)


def _with_seeds(
    axes: list[Axis], known: tuple[int, ...] | None, seed_text: str | None
) -> tuple[list[Axis], tuple[int, ...] | None]:
    """``seed=0,1`` is another way to write --seeds 0,1."""
    own = next((axis for axis in axes if axis.keys == ("seed",)), None)
    if own is None:
        return axes, known
    if seed_text is not None:
        raise ScenarioError(f"{COMMAND_LINE}: seed and --seeds are both given; keep --seeds")
    return [axis for axis in axes if axis is not own], seeds(
        ",".join(row[0].text for row in own.rows)
    )


def combined(
    document: Document,
    path: Path,
    axes: list[Axis],
    all_seeds: Sequence[int] | None,
    only: set[str],
) -> Iterator[tuple[Scenario, dict[str, str]]]:
    """Scenarios with the values that were swept, seeds innermost.

    Where the file has schemes, a swept method name chooses among them: a scheme says what its method's parameters are.
    """
    count = prod(len(axis.rows) for axis in axes) * len(all_seeds or (0,))
    if count > MOST:
        raise ScenarioError(
            f"{COMMAND_LINE}: the sweep has {count} points and more; allowed are {MOST}"
        )
    choice = Choice(path, only, "schemes" in document.tree)
    told = {key for axis in axes if varies(axis) for key in axis.keys}
    for rows in product(*(axis.rows for axis in axes)):
        values = [value for row in rows for value in row]
        method = next((value for value in values if choice.schemes and value.key == METHOD), None)
        changes = [value.change for value in values if value is not method]
        swept = {value.key: value.text for value in values if value.key in told}
        for seed in all_seeds or (None,):
            seeded = (
                [] if seed is None else [Override(("seed",), Document(seed, {(): COMMAND_LINE}))]
            )
            for label, scenario in expand_document(document, [*changes, *seeded], path.parent):
                if choice.takes(label, scenario, method):
                    yield scenario, swept
    choice.refuse_unused()


@dataclass
class Choice:
    """Which schemes of a file are run: those of ``only``, with the methods that are swept."""

    path: Path
    only: set[str]
    schemes: bool
    methods: dict[str, str] = field(default_factory=dict)  # of the schemes that were met, by label
    wanted: dict[str, bool] = field(default_factory=dict)  # swept method -> has some scheme it?

    def takes(self, label: str | None, scenario: Scenario, method: Value | None) -> bool:
        """Is this scheme run with this swept method (None: any)?"""
        own = scenario.learning.method.name
        self.methods[label or ""] = own
        chosen = not self.only or label in self.only
        if method is None:
            return chosen
        name = str(method.change[1].tree)
        fits = chosen and own == name
        self.wanted[name] = self.wanted.get(name, False) or fits
        return fits

    def refuse_unused(self) -> None:
        """Complain of a label that is no scheme, and of a method that no scheme has."""
        labels = ", ".join(filter(None, self.methods)) or "no schemes"
        for label in sorted(self.only - set(self.methods)):
            raise ScenarioError(
                f'{COMMAND_LINE}: {self.path} has no scheme "{label}"; it has {labels}'
            )
        known = "; ".join(
            f"{label}: {name}"
            for label, name in self.methods.items()
            if not self.only or label in self.only
        )
        for name in (name for name, found in self.wanted.items() if not found):
            raise ScenarioError(
                f"{COMMAND_LINE}: {METHOD} is {name}, which no scheme of {self.path} has ({known}); add one for it"
            )


def examined(scenario: Scenario, values: dict[str, str], **given: Any) -> Point:
    """A point whose every name is resolved, and which was asked whether anybody can take part."""
    prepared = prepare(scenario, **given)
    setup, table = prepared.setup, prepared.feasibility
    infeasible = None if table.feasible else table.note
    with user_errors(scenario):
        fingerprint, group = result_digest(setup), training_digest(setup)
    content = json.dumps(
        [fingerprint, scenario.name, scenario.scheme, code_digest(type(setup.method))]
    )
    identity = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Point(identity, scenario, values, group, fingerprint, infeasible, effort(setup))


def effort(setup: Setup) -> Effort:
    """What a round computes if everybody takes part; nothing where nothing is trained."""
    if setup.counts_only:
        return Effort()
    task, view = setup.task, setup.cell(simpy.Environment()).view(0, everyone=True)
    _, first, count = np.unique(task.samples, return_index=True, return_counts=True)
    flops = sum(
        n * sum(float(stage.work.flops) for stage in setup.method.forecast(view, int(k), 0.0))
        for k, n in zip(first, count, strict=True)
    )
    macs = float(sum(task.architecture.macs.values()))
    tested = sum(len(index) for index in task.data.test_index)
    return Effort(flops, flops / (6.0 * macs * task.batch_size), 2.0 * macs * tested)


def shortened(keys: Sequence[str]) -> list[str]:
    """Keys by their last word, or in full where two end alike."""
    last = Counter(key.rpartition(".")[2] for key in keys)
    return [key.rpartition(".")[2] if last[key.rpartition(".")[2]] == 1 else key for key in keys]


def _refuse_twins(points: Sequence[Point]) -> None:
    if not points:
        raise ScenarioError(
            f"{COMMAND_LINE}: the sweep has no points; --only and {METHOD} leave none"
        )
    first: dict[str, Point] = {}
    for point in points:
        twin = first.setdefault(point.id, point)
        if twin is not point:
            raise RunError(
                f'the points "{twin.name}" and "{point.name}" are the same run; keep one of the values'
            )

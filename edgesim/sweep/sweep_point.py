"""One point of a sweep: a checked scenario, and what identifies it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np
import simpy

from edgesim.records.folder_names import readable_name, short_names
from edgesim.runs.error_sentences import user_errors
from edgesim.runs.fingerprint import code_digest, result_digest, training_digest
from edgesim.runs.run import prepare
from edgesim.runs.setup.checks_before_training import check_own_data
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.loader import Scenario


@dataclass(frozen=True)
class SweepPoint:
    """One run of a sweep.

    Args:
        id: digest of all that decides its results [16 hex digits].
        scenario: checked.
        values: swept key -> its value as text.
        group: digest of what its training depends on beside the orders of a round; points of one
            group may share it (`fl.training_cache.cache`); None: with no other point.
        fingerprint: of its run folder.
        infeasible: why it cannot run at all; None: it can.
        training_flops: of a round in which all devices take part; points that train as much take
            about as long.
        labels: its data have class labels, and no real targets.
    """

    id: str
    scenario: Scenario
    values: dict[str, str]
    group: str | None
    fingerprint: str
    infeasible: str | None = None
    training_flops: float = 0.0
    labels: bool = True

    @property
    def label(self) -> str:
        return self.scenario.label

    @property
    def seed(self) -> int:
        return self.scenario.seed

    @property
    def name(self) -> str:
        """Such as ``fedavg, latency_threshold=15ms, seed 0``."""
        names = short_names(self.values)
        texts = [f"{names[key]}={text}" for key, text in self.values.items()]
        return ", ".join([self.label, *texts, f"seed {self.seed}"])

    @property
    def folder_name(self) -> str:
        """Such as ``fedavg,latency_threshold=15ms-s0-<id>``."""
        return f"{readable_name(self.label, self.values)}-s{self.seed}-{self.id}"


def check_point(
    scenario: Scenario, values: dict[str, str], data: str | None, allow_code: bool
) -> SweepPoint:
    """A point with every name resolved; can any device take part in it?

    Raises:
        ScenarioError, RunError: what is wrong with it, in one sentence.
    """
    prepared = prepare(scenario, data=data, allow_code=allow_code)
    setup, table = prepared.setup, prepared.feasibility
    infeasible = None if table.feasible else table.note
    with user_errors(scenario):
        check_own_data(setup)
        fingerprint, group = result_digest(setup), training_digest(setup)
    identity, flops = identity_of_point(setup, fingerprint), training_flops(setup)
    labels = setup.task.objective.labels
    return SweepPoint(identity, scenario, values, group, fingerprint, infeasible, flops, labels)


def identity_of_point(setup: Setup, fingerprint: str | None = None) -> str:
    """The `SweepPoint.id` of a run.

    Args:
        setup: of the run.
        fingerprint: its `result_digest`, where that is known.
    """
    code = code_digest(type(setup.method))
    scenario = setup.scenario
    content = json.dumps(
        [fingerprint or result_digest(setup), scenario.name, scenario.scheme, code]
    )
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def training_flops(setup: Setup) -> float:
    """Counted from the method's forecast; nothing where nothing is trained."""
    if setup.counts_only:
        return 0.0
    if setup.edges:
        rounds = setup.scenario.tiers.local_rounds if setup.scenario.tiers else 1
        return rounds * sum(map(training_flops, setup.edges))
    task, view = setup.task, setup.cell(simpy.Environment()).view(0, everyone=True)
    # devices with as many samples compute as much: one forecast for all of them
    _, first, count = np.unique(task.samples, return_index=True, return_counts=True)
    return sum(
        n * sum(float(stage.work.flops) for stage in setup.method.forecast(view, int(k), 0.0))
        for k, n in zip(first, count, strict=True)
    )

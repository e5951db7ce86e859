"""One point of a sweep: a checked scenario, what identifies it, and what a round of it computes."""

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
from edgesim.runs.setup import Setup
from edgesim.scenario.loader import Scenario


@dataclass(frozen=True)
class RoundWork:
    """What a round computes, if all devices take part.

    Args:
        training_flops: of all devices.
        sgd_steps: in about so many steps.
        evaluation_flops: of one evaluation.
    """

    training_flops: float = 0.0
    sgd_steps: float = 0.0
    evaluation_flops: float = 0.0


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
        work: of a round.
    """

    id: str
    scenario: Scenario
    values: dict[str, str]
    group: str | None
    fingerprint: str
    infeasible: str | None = None
    work: RoundWork = RoundWork()

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
        fingerprint, group = result_digest(setup), training_digest(setup)
    code = code_digest(type(setup.method))
    content = json.dumps([fingerprint, scenario.name, scenario.scheme, code])
    identity = hashlib.sha256(content.encode()).hexdigest()[:16]
    return SweepPoint(identity, scenario, values, group, fingerprint, infeasible, work_of(setup))


def work_of(setup: Setup) -> RoundWork:
    """Counted from the method's forecast; nothing where nothing is trained."""
    if setup.counts_only:
        return RoundWork()
    if setup.edges:
        tiers = setup.scenario.tiers
        parts, rounds = [work_of(edge) for edge in setup.edges], tiers.local_rounds if tiers else 1
        return RoundWork(
            rounds * sum(part.training_flops for part in parts),
            rounds * sum(part.sgd_steps for part in parts),
            sum(part.evaluation_flops for part in parts),
        )
    task, view = setup.task, setup.cell(simpy.Environment()).view(0, everyone=True)
    # devices with as many samples compute as much: one forecast for all of them
    _, first, count = np.unique(task.samples, return_index=True, return_counts=True)
    flops = sum(
        n * sum(float(stage.work.flops) for stage in setup.method.forecast(view, int(k), 0.0))
        for k, n in zip(first, count, strict=True)
    )
    macs = max(1.0, float(sum(task.architecture.macs.values())))
    tested = sum(map(len, (*task.data.test_index, *task.data.validation_index)))
    return RoundWork(flops, flops / (6.0 * macs * task.batch_size), 2.0 * macs * tested)

"""Jobs as they go to a process that was forked before they were made: those that hold numbers and tensors only."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import torch
from torch import Tensor

from fl.contracts import Job, Phase
from fl.executors.plan import Place, not_stacked, place_of, twins
from fl.task import LearningTask

TENSORS = "start", "mask", "submodel", "scale", "lr"  # of a phase: tensors, numbers or None
SETTINGS = "steps", "batches", "first", "ragged", "optimiser"
tensors_of, settings_of, how_long = (
    attrgetter(*TENSORS),
    attrgetter(*SETTINGS),
    attrgetter(*SETTINGS[:-1]),
)


class Ordered(NamedTuple):
    """What training looks at of a job (`fl.contracts.Job`)."""

    device: int
    g: int
    phases: tuple[Phase]
    finish: None = None


def sendable(task: LearningTask, jobs: Sequence[Job]) -> bool:
    """Have they one phase each, without functions, and models of one size, so that they can be trained in stacks?"""
    if any(len(job.phases) != 1 or job.finish is not None for job in jobs):
        return False
    different = {id(job.phases[0]): job for job in jobs}.values()
    if any(not_stacked(task, job) is not None for job in different):
        return False
    phases = [job.phases[0] for job in different]
    if any(
        callable(phase.start) or callable(phase.mask) or callable(phase.submodel)
        for phase in phases
    ):
        return False
    return len({(phase.start.numel(), phase.start.dtype) for phase in phases}) == 1


def written(jobs: Sequence[Job]) -> bytes:
    """Jobs of one phase each. What many have in common, a tensor or a whole phase, is written once."""
    values: dict[Place, Tensor] = {}
    phases: dict[tuple, int] = {}
    rows, latest, number = [], None, 0
    for job in jobs:
        phase = job.phases[0]
        if phase is not latest and not (
            latest and twins(phase, latest) and how_long(phase) == how_long(latest)
        ):
            tensors, latest = tensors_of(phase), phase
            made = *map(place_of, tensors), *settings_of(phase)
            number = phases.setdefault(made, len(phases))
            values |= {
                place: value
                for place, value in zip(made, tensors, strict=False)
                if place is not value
            }
        rows.append((int(job.device), int(job.g), number))
    plain = {place: value.detach().numpy() for place, value in values.items()}
    return pickle.dumps((rows, list(phases), plain), protocol=5)


def read(order: bytes | memoryview) -> list[Ordered]:
    """The same jobs, as far as training looks at them; their tensors in memory of torch's own, as those of a pool."""
    rows, made, plain = pickle.loads(order)
    values = {place: torch.tensor(one) for place, one in plain.items()}
    phases = []
    for each in made:
        tensors = (
            values[place] if type(place) is tuple else place for place in each[: len(TENSORS)]
        )
        settings = dict(zip(SETTINGS, each[len(TENSORS) :], strict=True))
        phases.append((Phase(**dict(zip(TENSORS, tensors, strict=True)), **settings),))
    return [Ordered(device, g, phases[number]) for device, g, number in rows]

"""A pass of training in several processes, byte for byte the same as in one: jobs are cut into pieces for a `Crew`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch

from fl.contracts import Job, Trained
from fl.executors.cost_model import flops_of
from fl.executors.crew import MOST_PIECES, Crew
from fl.executors.fallbacks import Notes
from fl.executors.processes import cores, one_thread
from fl.task import LearningTask


class Pool:
    """Divides a pass among processes of one thread each; each trains its pieces with ``inner``.

    Args:
        workers: processes, this one included; None: one per core that this process may use.
        least_s: a pass that takes about less than so many seconds is not worth forked processes.
        pieces: pieces per worker into which a pass is cut; None: every job is one.
        short: trains the passes that are not worth them; None: ``inner``, in this process alone.
    """

    def __init__(
        self,
        task: LearningTask,
        inner: Any,
        workers: int | None = None,
        least_s: float = 0.0,
        pieces: int | None = None,
        short: Any = None,
    ) -> None:
        self.task, self.inner, self.short = task, inner, short or inner
        self.workers = cores() if workers is None else workers
        self.least_s, self.pieces = least_s, pieces
        self.name = f"{inner.name}, {self.workers} processes"
        self.notes: Notes = inner.notes
        self._crew = Crew(task, self.workers, self.notes)

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        with one_thread():
            return self._run(jobs)

    def end(self) -> None:
        """Ends the process that stays for short passes."""
        self.short.end()

    def _run(self, jobs: Sequence[Job]) -> list[Trained]:
        if min(self.workers, len(jobs)) < 2:
            return self.inner.run(jobs)
        if self.inner.pace.seconds(self.task, jobs) < self.least_s:
            return self.short.run(jobs)
        if self._crew.hindered(len(jobs)):
            return self.inner.run(jobs)
        pieces = self._cut(jobs)
        sizes = [len(piece) for piece in pieces]
        done = self._crew.each(
            lambda number: self.inner.run(pieces[number]), sizes, packed, unpacked
        )
        results = dict(zip(map(id, chain(*pieces)), chain(*done), strict=True))
        return [results[id(job)] for job in jobs]

    def _cut(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Pieces of the pass, the heaviest job first."""
        heavy = sorted(jobs, key=lambda job: -flops_of(self.task, job))
        wanted = len(jobs) if self.pieces is None else self.pieces * self.workers
        size = -(-len(jobs) // min(wanted, MOST_PIECES))
        return [heavy[i : i + size] for i in range(0, len(heavy), size)]


# --- what travels --------------------------------------------------------------------------------------------------


def packed(made: Sequence[Trained]) -> list[tuple[Any, ...]]:
    """What was trained, as numbers and arrays."""
    arrays = [None if one.collected is None else one.collected.numpy() for one in made]
    return [
        (one.w.numpy(), one.mask.numpy(), one.loss, one.accuracy, collected)
        for one, collected in zip(made, arrays, strict=True)
    ]


def unpacked(made: Sequence[tuple[Any, ...]]) -> list[Trained]:
    """Tensors in memory of torch's own: where it begins can decide the last bits of what is computed from them."""
    return [
        Trained(
            torch.tensor(w),
            torch.tensor(mask),
            loss,
            accuracy,
            None if seen is None else torch.tensor(seen),
        )
        for w, mask, loss, accuracy, seen in made
    ]

"""The whole cohort as one tensor program: models of equal shape are stacked and take their steps together.

Phase by phase, jobs that compute alike form a group; a submodel is cut out first, so that every width is a group of its
own. A group is trained in chunks that fit into a stated memory. Nothing mixes the models of a stack, so neither
neighbours nor chunks change a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import torch

from edgesim.contracts import Job, Trained
from fl import local
from fl.executors.notes import Notes
from fl.executors.pieces import Desk, Extent, Piece, Run, not_stacked
from fl.executors.stacked import Arithmetic, Dense, Vmapped, is_dense
from fl.executors.steps import take_steps
from fl.executors.work import Pace
from fl.task import Task

SMALL, LARGE = 64 << 20, 1 << 30  # bytes of a chunk: of perceptrons on a CPU, of anything else
WIDTH = 16  # models in a stack whose operations choose their algorithm by the number of models
KEPT = 4  # kinds of stacks, by what is trained, whose memory stays for the next pass
MEMORY_FULL = (MemoryError, torch.OutOfMemoryError)


class Batched:
    """Trains stacks; jobs that cannot be stacked one by one, which the notes say.

    Args:
        memory: about how many bytes the models, gradients and signals of a chunk may take; None: 64 MB for
            perceptrons on a CPU, else 1 GB.
    """

    name = "batched"
    pace = Pace(step_s=1e-5, flops_per_s=7e10)
    parted = staticmethod(torch.unbind_copy)  # how models leave their stack

    def __init__(self, task: Task, memory: int | None = None) -> None:
        self.task, self.notes = task, Notes()
        dense, cpu = is_dense(task.architecture), task.device == "cpu"
        self._arithmetic = Dense if dense else Vmapped
        self._kept: dict[tuple[bool, ...], Arithmetic] = {}
        self.memory = memory or (SMALL if dense and cpu else LARGE)
        self.width = None if dense and cpu else WIDTH

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        desk, runs = Desk(self.task), [Run(job, not_stacked(self.task, job)) for job in jobs]
        for number in range(max((len(job.phases) for job in jobs), default=0)):
            going = [run for run in runs if run.trouble is None and number < len(run.job.phases)]
            pieces = [desk.prepare(run, run.job.phases[number]) for run in going]
            for group in alike(piece for piece in pieces if piece is not None):
                self._train(group)
        for reason in sorted({run.trouble for run in runs if run.trouble}):
            self.notes.add(f"one by one instead of batched: {reason}", sum(run.trouble == reason for run in runs))
        return [local.run(self.task, run.job) if run.trouble else run.end() for run in runs]

    def end(self) -> None:
        """Gives back the memory that is kept for the next pass."""
        self._kept.clear()

    def arithmetic(self, extent: Extent) -> Arithmetic:
        """What computes where so much of every slot is trained; it stays, with its memory, for the next pass."""
        trained = tuple(how != "none" for how in extent)
        if trained not in self._kept and len(self._kept) == KEPT:
            self._kept.clear()
        return self._kept.setdefault(trained, self._arithmetic(self.task.architecture, trained))

    def _train(self, group: list[Piece]) -> None:
        """Trains a group; those who take most steps come first, so that who has finished is at a chunk's end."""
        group.sort(key=lambda piece: -piece.steps)
        self._in_chunks(group, self.chunk(group[0]))

    def chunk(self, piece: Piece) -> int:
        """How many pieces of its kind fit into the memory: eight numbers per weight and three per signal of a batch."""
        architecture = self.task.architecture
        signals = sum(prod(shape) for shape in architecture.input_shapes) + architecture.classes
        fitting = max(1, self.memory // (4 * (8 * piece.form.layout.size + 3 * piece.batch * signals)))
        return fitting if self.width is None else min(fitting, self.width)

    def _in_chunks(self, group: list[Piece], size: int) -> None:
        """Trains so many models at a time; where the memory does not hold them, half as many."""
        for chunk in (group[i : i + size] for i in range(0, len(group), size)):
            try:
                arithmetic = self.arithmetic(chunk[0].form.extent)
                take_steps(self.task, arithmetic, chunk, None if self.width is None else size, self.parted)
            except MEMORY_FULL:
                self.end()
                if size == 1:
                    chunk[0].run.trouble = "a single model is too large for the memory"
                else:
                    self.notes.add(f"fewer than {size} models at once: too large for the memory", len(chunk))
                    self._in_chunks(chunk, size // 2)
            except (RuntimeError, NotImplementedError) as error:
                for piece in chunk:
                    piece.run.trouble = str(error).splitlines()[0]


def alike(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """The pieces by kind, in the order in which the kinds first come."""
    groups: dict[tuple, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.kind, []).append(piece)
    return list(groups.values())

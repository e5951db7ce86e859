"""The whole cohort as one tensor program: models of equal shape are stacked and take their steps together.

Phase by phase, jobs that compute alike form a group; a submodel is cut out first, so that every width is a group of its
own. A group is trained in chunks that fit into a stated memory. Nothing mixes the models of a stack, so neither
neighbours nor chunks change a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import torch
from torch import Tensor

from edgesim.contracts import Job, Trained
from fl import local
from fl.executors.lanes import Lanes
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
NO_MEMORY = ("can't allocate memory", "not enough memory")
Shown = tuple[list[Piece], Tensor, Tensor]  # a chunk, and loss and accuracy of its models [C], summed over the steps


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
        self.width, self.least = (None, 1) if dense and cpu else (WIDTH, 2)  # a single one would round differently
        self._lanes = Lanes(task.device)

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        desk, runs, shown = Desk(self.task), [Run(job, not_stacked(self.task, job)) for job in jobs], []
        for number in range(max((len(job.phases) for job in jobs), default=0)):
            going = [run for run in runs if run.trouble is None and number < len(run.job.phases)]
            pieces = [desk.prepare(run, run.job.phases[number]) for run in going]
            for group in alike(piece for piece in pieces if piece is not None):
                shown += self._train(group)
            self._lanes.join()
        for chunk, loss, right in shown:
            for piece, total, hits in zip(chunk, loss.tolist(), right.tolist(), strict=False):
                piece.show(total, hits)
        for reason in sorted({run.trouble for run in runs if run.trouble}):
            self.notes.add(f"one by one instead of batched: {reason}", sum(run.trouble == reason for run in runs))
        return [local.run(self.task, run.job) if run.trouble else run.end() for run in runs]

    def end(self) -> None:
        """Gives back the memory that is kept for the next pass."""
        self._kept.clear()

    def arithmetic(self, extent: Extent) -> Arithmetic:
        """What computes where so much of every slot is trained; it stays, with its memory, for the next pass."""
        trained = tuple(how != "none" for how in extent)
        if trained not in self._kept:
            if len(self._kept) == KEPT:
                self._kept.clear()
            self._kept[trained] = self._arithmetic(self.task.architecture, trained)
        return self._kept[trained]

    def _train(self, group: list[Piece]) -> list[Shown]:
        """Trains a group; those who take most steps come first, so that who has finished is at a chunk's end."""
        group.sort(key=lambda piece: -piece.steps)
        return self._in_chunks(group, self.chunk(group[0]))

    def chunk(self, piece: Piece) -> int:
        """How many pieces of its kind fit into the memory: eight numbers per weight, three per signal of a batch, and
        for every sample of every step its place and its weight, twice."""
        architecture = self.task.architecture
        signals = sum(prod(shape) for shape in architecture.input_shapes) + architecture.classes
        numbers = 8 * piece.form.layout.size + 3 * piece.batch * signals
        fitting = max(self.least, self.memory // (4 * numbers + 32 * piece.steps * piece.batch))
        return fitting if self.width is None else min(fitting, self.width)

    def _in_chunks(self, group: list[Piece], size: int) -> list[Shown]:
        """Trains so many models at a time; where the memory does not hold them, half as many.

        Raises:
            MemoryError: it does not hold the fewest whose results are the same.
        """
        shown = []
        for chunk in (group[i : i + size] for i in range(0, len(group), size)):
            width = None if self.width is None else size
            try:
                arithmetic = self.arithmetic(chunk[0].form.extent)
                with self._lanes.next():
                    shown.append((chunk, *take_steps(self.task, arithmetic, chunk, width, self.parted)))
            except (RuntimeError, NotImplementedError, MemoryError) as error:
                if memory_is_full(error):
                    shown += self._halved(chunk, size)
                else:
                    for piece in chunk:
                        piece.run.trouble = str(error).splitlines()[0]
        return shown

    def _halved(self, chunk: list[Piece], size: int) -> list[Shown]:
        self.end()
        if size <= self.least:
            raise MemoryError(f"the memory does not hold the training of {size} model{'s' if size > 1 else ''}")
        self.notes.add(f"fewer than {size} models at once: too large for the memory", len(chunk))
        return self._in_chunks(chunk, size // 2)


def memory_is_full(error: Exception) -> bool:
    """Did an operation get no memory? On a CPU torch says so in words only."""
    return isinstance(error, MEMORY_FULL) or any(words in str(error) for words in NO_MEMORY)


def alike(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """The pieces by kind, in the order in which the kinds first come."""
    groups: dict[tuple, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.kind, []).append(piece)
    return list(groups.values())

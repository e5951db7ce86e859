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

from fl.contracts import Job, Trained
from fl.executors.cost_model import Pace
from fl.executors.cuda_streams import Lanes
from fl.executors.fallbacks import Notes
from fl.executors.plan import Desk, Extent, Piece, Run, not_stacked
from fl.executors.stacked import Arithmetic, Dense, Vmapped, is_dense
from fl.executors.stacked_sgd import take_steps
from fl.out_of_memory import is_full
from fl.task import LearningTask
from fl.training import local_sgd as local

SMALL, LARGE = 64 << 20, 1 << 30  # bytes of a chunk: of perceptrons on a CPU, of anything else
WIDTH = 16  # models in a stack whose operations choose their algorithm by the number of models
KEPT = 4  # kinds of stacks, by what is trained, whose memory stays for the next pass
Shown = tuple[
    list[Piece], Tensor, Tensor
]  # a chunk, and loss and accuracy of its models [C], summed over the steps


class Batched:
    """Trains stacks; jobs that cannot be stacked one by one, which the notes say.

    Args:
        memory: about how many bytes the models, gradients and signals of a chunk may take; None: 64 MB for
            perceptrons on a CPU, else 1 GB.
    """

    name = "batched"
    pace = Pace(step_s=1e-5, flops_per_s=7e10)
    parted = staticmethod(torch.unbind_copy)  # how models leave their stack

    def __init__(self, task: LearningTask, memory: int | None = None) -> None:
        self.task, self.notes = task, Notes()
        dense, cpu = is_dense(task.architecture), task.device == "cpu"
        self._arithmetic = Dense if dense else Vmapped
        self._kept: dict[tuple[int, tuple[bool, ...]], Arithmetic] = {}
        self.memory = memory or (SMALL if dense and cpu else LARGE)
        self.width, self.least = (
            (None, 1) if dense and cpu else (WIDTH, 2)
        )  # a single one would round differently
        self._lanes = Lanes(task.device)

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        desk, runs, shown = (
            Desk(self.task),
            [Run(job, not_stacked(self.task, job)) for job in jobs],
            [],
        )
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
            self.notes.add(
                f"one by one instead of batched: {reason}",
                sum(run.trouble == reason for run in runs),
            )
        return [local.run(self.task, run.job) if run.trouble else run.end() for run in runs]

    def end(self) -> None:
        """Gives back the memory that is kept for the next pass."""
        self._lanes.join()
        self._kept.clear()

    def arithmetic(self, extent: Extent) -> Arithmetic:
        """What computes in this lane where so much of every slot is trained; it stays, with its memory, for later."""
        trained = tuple(how != "none" for how in extent)
        key = self._lanes.turn, trained
        if key not in self._kept:
            if len(self._kept) == KEPT:
                self.end()
            self._kept[key] = self._arithmetic(self.task.architecture, trained)
        return self._kept[key]

    def _train(self, group: list[Piece]) -> list[Shown]:
        """Trains a group; those who take most steps come first, so that who has finished is at a chunk's end."""
        group.sort(key=lambda piece: -piece.steps)
        return self._in_chunks(group, self.chunk(group[0]))

    def chunk(self, piece: Piece) -> int:
        """How many pieces of its kind fit into the memory: eight numbers per weight, three per signal of a batch, and
        for every sample of every step its place and its weight, twice. A width of its own does not go by the steps."""
        architecture = self.task.architecture
        signals = sum(prod(shape) for shape in architecture.input_shapes) + architecture.classes
        each = 4 * (8 * piece.form.layout.size + 3 * piece.batch * signals)
        if self.width is not None:
            return min(max(self.least, self.memory // each), self.width)
        return max(self.least, self.memory // (each + 32 * piece.steps * piece.batch))

    def _in_chunks(self, group: list[Piece], size: int) -> list[Shown]:
        """Trains so many models at a time; where the memory does not hold them, half as many.

        Raises:
            MemoryError: it does not hold the fewest whose results are the same.
        """
        shown = []
        for chunk in (group[i : i + size] for i in range(0, len(group), size)):
            try:
                shown.append(self._trained(chunk, size))
                continue
            except (RuntimeError, NotImplementedError, MemoryError) as error:
                full, trouble = is_full(error), f"{error}\n".splitlines()[0]
            if full:  # and what was tried is given back, as nothing holds the error any more
                shown += self._halved(chunk, size)
            else:
                for piece in chunk:
                    piece.run.trouble = trouble
        return shown

    def _trained(self, chunk: list[Piece], size: int) -> Shown:
        with self._lanes.next():
            arithmetic = self.arithmetic(chunk[0].form.extent)
            width = None if self.width is None else size
            return chunk, *take_steps(self.task, arithmetic, chunk, width, self.parted)

    def _halved(self, chunk: list[Piece], size: int) -> list[Shown]:
        self.end()
        tried = min(size, len(chunk)) if self.width is None else size
        if tried <= self.least:
            raise MemoryError(
                f"the memory does not hold the training of {tried} model{'s' if tried > 1 else ''}"
            )
        self.notes.add(f"fewer than {tried} models at once: too large for the memory", len(chunk))
        return self._in_chunks(chunk, tried // 2)


def alike(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """The pieces by kind, in the order in which the kinds first come."""
    groups: dict[tuple, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.kind, []).append(piece)
    return list(groups.values())

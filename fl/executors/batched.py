"""Training of a cohort as stacks: models of equal shape take their steps together.

Phase by phase, the jobs that compute alike form a group; submodels are cut out first, so that each
width is a group of its own. A group is trained in chunks that fit into a stated memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import prod

from fl.contracts import Job, Trained
from fl.executors.one_by_one import OneByOne
from fl.out_of_memory import is_out_of_memory
from fl.stacked_training.convolution_gradients import ConvolutionGradients, patch_values
from fl.stacked_training.perceptron_gradients import PerceptronGradients
from fl.stacked_training.stackable_models import is_perceptron, is_plain_cnn, is_small_cnn
from fl.stacked_training.stackable_phases import JobProgress, RowBuilder, StackRow, why_not_stacked
from fl.stacked_training.stacked_sgd import Gradients, least_computing, train_stack
from fl.stacked_training.vmapped_gradients import VmappedGradients
from fl.task import LearningTask
from fl.training.fallback_counts import Fallbacks
from fl.worker_threads import map_in_threads

# Of a chunk of small models on a CPU: what its caches like best, and little enough that a hundred
# small CNNs are several chunks.
CACHED_BYTES = 32 << 20
ACCELERATOR_BYTES = 4 << 30  # of a chunk of CNNs on an accelerator, whose patches take most of it
CHUNK_BYTES = 1 << 30  # of a chunk of anything else
WIDTH = 16  # models in a chunk of anything else


def gradients_of(task: LearningTask) -> type[Gradients]:
    """What computes the gradients of a stack of the task's models."""
    model = task.architecture
    if is_perceptron(model):
        return PerceptronGradients
    by_products = is_small_cnn(model) if task.device == "cpu" else is_plain_cnn(model)
    return ConvolutionGradients if by_products else VmappedGradients


class Batched:
    """Trains stacks of models. Jobs that cannot be stacked are trained one by one and reported.

    Args:
        threads: how many chunks are trained at a time; a single chunk has one thread.
        memory: bytes that the models, gradients and signals of a chunk may take, about; None: 32 MB
            for perceptrons and small CNNs on a CPU, 4 GB for CNNs on an accelerator, else 1 GB.
    """

    name = "batched"

    def __init__(self, task: LearningTask, threads: int = 1, memory: int | None = None) -> None:
        self.task, self.threads, self.fallbacks = task, threads, Fallbacks()
        self._gradients = gradients_of(task)
        # Other operations choose their algorithm by the number of models, and round by it: all
        # stacks of a kind then have the same number, filled up by idle models.
        self._fixed_width = self._gradients is VmappedGradients or task.device != "cpu"
        largest = ACCELERATOR_BYTES if self._gradients is ConvolutionGradients else CHUNK_BYTES
        self.memory = memory or (largest if self._fixed_width else CACHED_BYTES)

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        """Results in the order of the jobs.

        Raises:
            MemoryError: the memory does not hold the smallest stack with the same results.
        """
        builder = RowBuilder(self.task)
        progress = [JobProgress(job, why_not_stacked(self.task, job)) for job in jobs]
        for number in range(max((len(job.phases) for job in jobs), default=0)):
            groups: dict[tuple[int, int], list[StackRow]] = {}  # rows that can share a stack
            for each in progress:
                if each.not_stacked is None and number < len(each.job.phases):
                    row = builder.row(each, number)
                    if row is not None:
                        groups.setdefault((row.part.kind, row.batch), []).append(row)
            chunks = [chunk for group in groups.values() for chunk in self.chunks(group)]
            map_in_threads(self._train, chunks, self.threads)
        left = [each for each in progress if each.not_stacked is not None]
        for reason, count in sorted(Counter(str(each.not_stacked) for each in left).items()):
            self.fallbacks.add(f"one by one instead of batched: {reason}", count)
        alone = iter(OneByOne(self.task).run([each.job for each in left]))
        return [each.result() if each.not_stacked is None else next(alone) for each in progress]

    def chunks(self, group: list[StackRow]) -> list[list[StackRow]]:
        """A group in chunks of a size, up to a row, those with most steps first: they end last."""
        group.sort(key=lambda row: -row.steps)
        count = -(-len(group) // self.chunk_size(group[0]))
        ends = [len(group) * i // count for i in range(count + 1)]
        return [group[first:end] for first, end in pairwise(ends)]

    def chunk_size(self, row: StackRow) -> int:
        """How many rows such as this one fit into the memory.

        Counted are eight numbers per weight, three per signal of a batch, 32 bytes per sample.
        """
        architecture = self.task.architecture
        signals = sum(prod(shape) for shape in architecture.input_shapes) + architecture.classes
        if self._gradients is ConvolutionGradients:
            signals += patch_values(architecture)
        each = 4 * (8 * row.part.layout.size + 3 * row.batch * signals)
        if self._fixed_width:
            return min(max(2, self.memory // each), WIDTH)
        return max(1, self.memory // (each + 32 * row.steps * row.batch))

    def _train(self, chunk: list[StackRow]) -> None:
        """Trains a chunk; where the memory does not hold it, its halves."""
        first = chunk[0]
        least = self.chunk_size(first) if self._fixed_width else least_computing(first)
        gradients = self._gradients(
            self.task.architecture, [how != "none" for how in first.part.extent]
        )
        try:
            parts, losses, accuracies = train_stack(self.task, gradients, chunk, least)
            models = [row.part.put_back(p, row.w) for row, p in zip(chunk, parts, strict=True)]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                for row in chunk:
                    row.progress.not_stacked = f"{error}\n".splitlines()[0]
                return
        else:
            for row, w, loss, accuracy in zip(chunk, models, losses, accuracies, strict=True):
                row.progress.done.append(w)
                row.progress.loss, row.progress.accuracy = loss, accuracy
            return
        # Only here, where nothing holds the error any more, is what was tried given back.
        del gradients
        count = max(least, len(chunk))
        if self._fixed_width or len(chunk) == 1:
            raise MemoryError(f"the memory does not hold the training of {count} models at once")
        sentence = f"fewer than {count} models at once: too large for the memory"
        self.fallbacks.add(sentence, len(chunk))
        for half in (chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]):
            self._train(half)

"""Which executor trains a scenario: a rule written down from benchmarks (docs/performance.md), never timed in a run.

What moves the last bits, stacked or one by one, depends only on the architecture and on the kind of device, so that a
job comes out the same in any pass. How many processes share a pass depends on the cores and on its work; it moves none.
"""

from __future__ import annotations

from typing import Any

from fl.executors.batched import Batched
from fl.executors.memory import keep_freed_memory
from fl.executors.partner import Paired
from fl.executors.pool import Pool
from fl.executors.processes import cores
from fl.executors.resident import Resident
from fl.executors.stacked import is_dense
from fl.task import LearningTask

NAMES = ("auto", "resident", "pool", "batched")
FORK_PAYS_S = 0.15  # seconds of a pass: sharing it costs about 0.03 s, for what a process copies at first touch


def choose(task: LearningTask, name: str = "auto", workers: int | None = None) -> Any:
    """The executor of that name.

    Args:
        name: resident | pool | batched | auto: stacked where `stacks` says so, in processes where a pass is worth it.
        workers: processes that may compute at once; None: one per core that this process may use.
    """
    if name not in NAMES:
        raise ValueError(f'there is no executor "{name}"; there are {", ".join(NAMES)}')
    keep_freed_memory()
    workers = cores() if workers is None else workers
    stacked = arithmetic(task, name) == "stacked"
    inner = Batched(task) if stacked else Resident(task)
    if name == "pool":
        return Pool(task, inner, workers)
    if name == "auto" and workers > 1 and task.device == "cpu":
        short = Paired(task, inner) if stacked else None
        return Pool(
            task, inner, workers, least_s=FORK_PAYS_S, pieces=2 if stacked else None, short=short
        )
    return inner


def arithmetic(task: LearningTask, name: str = "auto") -> str:
    """ "stacked" or "one by one": what of an executor's name can move the last bits of a result."""
    stacked = name == "batched" or (name == "auto" and stacks(task))
    return "stacked" if stacked else "one by one"


def stacks(task: LearningTask) -> bool:
    """Is a stack faster than one model after the other? On a CPU, where no autograd is needed for it."""
    return task.device != "cpu" or is_dense(task.architecture)

"""How many weights Liu's estimate (20) keeps of those that the exact importance (19) keeps.

python examples/exact_importance.py

The scheme of scenarios/papers/liu-fig3.yaml on the digits, without a network. In some rounds four
devices rank the same received weights by (19), by (20) and by two other rules.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from edgesim import load
from edgesim.runs.setup import set_up
from fl.contracts import Grant, Job, Tensor, View
from fl.executors.deferred_training import Trainer
from fl.executors.one_by_one import OneByOne
from fl.masks.unit_masks import kept_count, largest

RATIOS, SEEDS, SHOWN, RANKED = (0.4, 0.8), (0, 1, 2), (0, 20, 60), (0, 1, 2, 3)
CHANGES = [
    "learning.dataset=digits",
    "learning.model=digits-cnn",
    "learning.batch_size=32",
    "learning.method.personal_lr=0.01",
    "learning.method.global_lr=0.01",
]
Shares = dict[str, float]


def play(rho: float, seed: int) -> dict[int, list[Shares]]:
    """Round -> of every ranking device, ranking -> share of the weights of (19)."""
    scenario = load("scenarios/papers/liu-fig3.yaml", [*CHANGES, f"learning.method.rho={rho}"])
    method = set_up(scenario, seed=seed).method
    exact = replace(method, importance="exact")
    task, state, found = method.task, method.start(), {}
    ones = np.ones(task.devices)
    for g in range(max(SHOWN) + 1):
        view = View(g, 0.0, np.arange(task.devices), ones, ones, task.samples, np.inf, ones, ones)
        grants = [Grant(k, 0.1, rho, 1.0, 1.0) for k in range(task.devices)]
        jobs = [method.configure(state, view, grant) for grant in grants]
        if g in SHOWN:
            found[g] = [
                compared(method, jobs[k], exact.configure(state, view, grants[k]), rho)
                for k in RANKED
            ]
        updates = Trainer(task).submit(jobs)
        state = method.aggregate(method.retain(state, updates), view, updates)
    return found


def compared(method, job: Job, exact: Job, rho: float) -> Shares:
    """What the rankings keep of the shared weights that (19) keeps on the same batch."""
    executor, shared = OneByOne(method.task), method.shared_mask
    u = executor.run([first_phases(job, 1)])[0].w  # behind the personal steps
    change = executor.run([first_phases(job, 2)])[0].w - u  # by the warm-up
    count = kept_count(rho, int(shared.sum()))

    def kept_by(scores: Tensor) -> Tensor:
        return largest(scores.abs(), shared, count)

    best = executor.run([exact])[0].mask & shared
    rankings = {
        "(20)": executor.run([job])[0].mask & shared,
        "change in the warm-up times weight": kept_by(change * u),
        "size of the weight": kept_by(u),
    }
    return {name: float((mask & best).sum() / best.sum()) for name, mask in rankings.items()}


def first_phases(job: Job, count: int) -> Job:
    """The job without what follows its first phases."""
    return replace(job, phases=job.phases[:count], finish=None)


def main() -> None:
    """Print a line for each ratio and ranking: the mean share, in % of the weights of (19)."""
    torch.set_num_threads(1)
    print(f"{'ranking':36}rho" + "".join(f"  round {g:<3}" for g in SHOWN))
    for rho in RATIOS:
        runs = [play(rho, seed) for seed in SEEDS]
        for name in runs[0][SHOWN[0]][0]:
            means = [np.mean([each[name] for found in runs for each in found[g]]) for g in SHOWN]
            print(f"{name:36}{rho:<3}" + "".join(f"  {mean:7.1%}  " for mean in means))


if __name__ == "__main__":
    main()

"""Where the wall time of a run goes, and what the engine and the solver cost by themselves. Ratios from one run.

    python benchmarks/rounds.py [--scenario scenarios/demo.yaml]

Prints (i) the share of a run's wall time outside of training and evaluation, per scheme (to reach: under 20 %),
(ii) `kkt` against `convex` on the same random problems, in time and in objective, (iii) simulated rounds per second.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from edgesim import scenario as scenarios
from edgesim import simulate
from solvers import PruningProblem, allocate

ROOT = Path(__file__).parent.parent


def run_shares(path: Path) -> None:
    import torch  # noqa: F401 (imported before the clock starts: it takes longer than a short run)

    print(f"{'scheme':24}{'wall s':>9}{'train':>9}{'evaluate':>10}{'rest':>8}{'rounds/s':>10}")
    for label, scenario in scenarios.expand(path, ["rounds=10"]):
        begin = time.perf_counter()
        spent = simulate(scenario).spent
        wall = time.perf_counter() - begin
        rest = wall - spent["train_s"] - spent["evaluate_s"]
        shares = [f"{100 * part / wall:.1f} %" for part in (spent["train_s"], spent["evaluate_s"], rest)]
        print(
            f"{label or scenario.name:24}{wall:9.2f}{shares[0]:>9}{shares[1]:>10}{shares[2]:>8}"
            f"{scenario.rounds / wall:10.1f}"
        )


def problem(devices: int, seed: int = 0) -> PruningProblem:
    """A random cell around Liu's setting: K devices, unpruned uploads of about twice the slack in an equal share."""
    rng = np.random.default_rng(seed)
    slack_s = rng.uniform(18e-3, 24e-3, devices)
    upload_s = rng.uniform(30e-3, 70e-3, devices)
    return PruningProblem(
        bits=1e7, compute_s=rng.uniform(1e-3, 6e-3, devices), slack_s=slack_s, rate_bps=1e7 / upload_s * devices
    )


def median_s(function, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def solver_ratio() -> None:
    print(f"\n{'devices':>9}{'kkt ms':>10}{'convex ms':>11}{'ratio':>8}{'objective difference':>22}")
    for devices in (10, 100, 1000):
        p = problem(devices)
        exact, reference = allocate(p, "kkt"), allocate(p, "convex")
        kkt_s, convex_s = median_s(lambda p=p: allocate(p, "kkt"), 15), median_s(lambda p=p: allocate(p, "convex"), 3)
        apart = abs(exact.objective - reference.objective) / max(exact.objective, 1e-300)
        print(f"{devices:9}{kkt_s * 1e3:10.2f}{convex_s * 1e3:11.1f}{convex_s / kkt_s:8.0f}{apart:22.1e}")
    for devices in (100_000, 1_000_000):
        p = problem(devices)
        print(f"{devices:9}{median_s(lambda p=p: allocate(p, 'kkt'), 3) * 1e3:10.0f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--scenario", type=Path, default=ROOT / "scenarios" / "demo.yaml")
    run_shares(options.parse_args().scenario)
    solver_ratio()

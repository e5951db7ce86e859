"""Where the wall time of a run goes, and what the engine and the solver cost by themselves. Ratios
from one run.

    python benchmarks/rounds.py [--scenario scenarios/demo.yaml]

Prints (i) the share of a run's wall time outside of training and evaluation, per scheme (to reach:
under 20 %), (ii) `kkt` against `convex` on the same random problems, in time and in objective,
(iii) simulated rounds per second, (iv) a timing-only run of one round of 1e3, 1e5 and 1e6 devices
in a process of its own, folder included: wall and CPU seconds from the first import on, and peak
memory (to reach: 1e5 under 5 s; 1e6 under 60 s and 6 GB), (v) CPU seconds of a further round of
1e5 devices on rungs of `network.fidelity`, and their ratio to `paper` (to reach: 1.3); beside them
the floor, the draws of a round's blocks of fading alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)  # else solvers.py beside this file would be the package of its name

from edgesim import simulate  # noqa: E402
from edgesim.scenario import loader as scenarios  # noqa: E402
from solvers import PruningProblem, allocate  # noqa: E402

CROWD = """
name: crowd
rounds: 1
network:
  bandwidth: {mhz} MHz
  noise: -110 dBm
  channel: {{path_loss: {{model: constant, loss: 100 dB}}}}
devices:
  - {{count: {count}, tx_power: 28 dBm, cpu: {{frequency: {{uniform: [1 GHz, 3 GHz]}}, cycles_per_weight: 5}}}}
budget: {{latency_threshold: 25 ms}}
allocation: {{solver: {solver}}}
learning: {{dataset: none, model: liu-cnn, batch_size: 128, method: {{name: {method}}}}}
"""  # noqa: E501
RUNG = """
name: rung
rounds: 4
network: {{fidelity: {rung}, {band}}}
devices:
  - {{count: {count}, tx_power: 23 dBm, cpu: {{frequency: {{uniform: [1 GHz, 3 GHz]}}, cycles_per_weight: 5}}}}
budget: {{latency_threshold: {threshold}}}
learning: {{dataset: none, model: liu-cnn, batch_size: 128, method: {{name: liu}}}}
"""  # noqa: E501
BANDS = {
    "paper": "bandwidth: 100 MHz",
    "cell": "bandwidth: 100 MHz",
    "adapted": "carrier: {frequency: 3.5 GHz, bandwidth: 100 MHz}",
}
MEASURED = """
import resource, sys, time
begin = time.perf_counter()
from edgesim import load, simulate
simulate(load(sys.argv[1]), out=sys.argv[2])
spent = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - begin, spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 2**20)
"""


def run_shares(path: Path) -> None:
    import torch  # noqa: F401 (imported before the clock starts: it takes longer than a short run)

    print(f"\n{'scheme':24}{'wall s':>9}{'train':>9}{'evaluate':>10}{'rest':>8}{'rounds/s':>10}")
    for label, scenario in scenarios.expand(path, ["rounds=10"]):
        begin = time.perf_counter()
        spent = simulate(scenario).spent
        wall = time.perf_counter() - begin
        rest = wall - spent["train_s"] - spent["evaluate_s"]
        shares = [
            f"{100 * part / wall:.1f} %" for part in (spent["train_s"], spent["evaluate_s"], rest)
        ]
        print(
            f"{label or scenario.name:24}{wall:9.2f}{shares[0]:>9}{shares[1]:>10}{shares[2]:>8}"
            f"{scenario.rounds / wall:10.1f}"
        )


def problem(devices: int, seed: int = 0) -> PruningProblem:
    """A random cell around Liu's setting: K devices, unpruned uploads of about twice the slack in
    an equal share.
    """
    rng = np.random.default_rng(seed)
    slack_s = rng.uniform(18e-3, 24e-3, devices)
    upload_s = rng.uniform(30e-3, 70e-3, devices)
    return PruningProblem(
        bits=1e7,
        compute_s=rng.uniform(1e-3, 6e-3, devices),
        slack_s=slack_s,
        rate_bps=1e7 / upload_s * devices,
    )


def median_s(function, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def solver_ratio() -> None:
    print(
        f"\n{'devices':>9}{'kkt ms':>10}{'convex ms':>11}{'ratio':>8}{'objective difference':>22}"
    )
    for devices in (10, 100, 1000):
        p = problem(devices)
        exact, reference = allocate(p, "kkt"), allocate(p, "convex")
        kkt_s, convex_s = (
            median_s(lambda p=p: allocate(p, "kkt"), 15),
            median_s(lambda p=p: allocate(p, "convex"), 3),
        )
        apart = abs(exact.objective - reference.objective) / max(exact.objective, 1e-300)
        print(
            f"{devices:9}{kkt_s * 1e3:10.2f}{convex_s * 1e3:11.1f}{convex_s / kkt_s:8.0f}{apart:22.1e}"  # noqa: E501
        )
    for devices in (100_000, 1_000_000):
        p = problem(devices)
        print(f"{devices:9}{median_s(lambda p=p: allocate(p, 'kkt'), 3) * 1e3:10.0f}")


def crowds() -> None:
    """20 MHz a device, one round of Liu's costs and of FedAvg's."""
    print(f"{'devices':>9}{'method':>9}{'solver':>8}{'wall s':>9}{'CPU s':>8}{'GiB':>7}")
    for count in (1_000, 100_000, 1_000_000):
        for method, solver in (
            ("liu", "kkt"),
            ("liu", "equal"),
            ("fedavg", "kkt"),
            ("fedavg", "equal"),
        ):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "crowd.yaml"
                path.write_text(
                    CROWD.format(count=count, mhz=20 * count, method=method, solver=solver)
                )
                command = [sys.executable, "-c", MEASURED, str(path), str(Path(folder) / "run")]
                done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
            wall_s, cpu_s, gib = map(float, done.stdout.split())
            print(f"{count:9}{method:>9}{solver:>8}{wall_s:9.2f}{cpu_s:8.2f}{gib:7.2f}")


def rungs(count: int = 100_000) -> None:
    """A round of Liu's method on each rung, once it is planned: places and demands stay."""
    print(f"\n{'threshold':>9}{'rung':>9}{'first s':>9}{'round s':>9}{'ratio':>7}{'draws s':>9}")
    for threshold in ("25 ms", "1 s"):
        paper_s = 0.0
        for rung, band in BANDS.items():
            first_s, round_s, blocks = rung_s(rung, band, count, threshold)
            paper_s = paper_s or round_s
            print(
                f"{threshold:>9}{rung:>9}{first_s:9.2f}{round_s:9.2f}{round_s / paper_s:7.2f}"
                f"{draws_s(blocks, count):9.2f}"
            )


def rung_s(rung: str, band: str, count: int, threshold: str) -> tuple[float, float, int]:
    """CPU seconds of setting up and the first round, of a further one; its blocks of fading."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rung.yaml"
        path.write_text(RUNG.format(rung=rung, band=band, count=count, threshold=threshold))
        begin, ends_s = time.process_time(), []

        def note(event: dict) -> None:
            if event["kind"] == "round":
                ends_s.append(time.process_time())

        run = simulate(scenarios.load(path), progress=note)
    coherence_s = 9 / (16 * np.pi * 3 / 3.6 * 3.5e9 / 3e8)  # of 3 km/h
    blocks = 0 if rung == "paper" else int(run.rounds["latency_s"].iloc[-1] / coherence_s) + 1
    return ends_s[0] - begin, float(np.median(np.diff(ends_s))), blocks


def draws_s(blocks: int, count: int) -> float:
    """CPU seconds of the normal variables of so many blocks."""
    stream, begin = np.random.Generator(np.random.Philox(0)), time.process_time()
    for _ in range(blocks):
        stream.standard_normal((count, 2))
    return time.process_time() - begin


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--scenario", type=Path, default=ROOT / "scenarios" / "demo.yaml")
    given = options.parse_args()
    crowds()  # first: what a process had in memory before it starts another counts among the other's peak  # noqa: E501
    rungs()
    run_shares(given.scenario)
    solver_ratio()

"""Jobs a second of clocks whose jobs overlap, where nothing is trained: columns beside processes.

    python benchmarks/clocks.py [--jobs 300000]

Prints jobs per second of CPU (user and system, setting up included), simulated seconds and how much
memory was added: (i) columns with 100,000 devices of which 10,000 are in flight, a version of every
1,000 arrivals (to reach on a quiet core: 100,000 jobs/s, 1e6 jobs under 15 s; a test in
`tests/edgesim/clocks/vectorised` asserts less than 2 kB for each job in flight), (ii)
the same cell with slots that are free at each arrival, so that every job is handed out by itself,
(iii) a process per device with 1,000 devices, (iv) the floor of (ii): a heap of ends and a draw for
each job in plain Python, without costs, rows or versions. The last line is what this machine needs
for a plain loop of 1e7 additions: 0.4 to 0.5 s on a quiet core of 2024.
"""

from __future__ import annotations

import argparse
import heapq
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)

import numpy as np  # noqa: E402

import edgesim.runs.play_rounds  # noqa: E402
from edgesim import load, simulate  # noqa: E402

CELL = """
name: many
rounds: {rounds}
network:
  bandwidth: 200 MHz
  noise: -110 dBm
  channel: {{path_loss: {{model: log-distance, reference_loss: 38.5 dB, exponent: 3.5}}}}
devices:
  - {{count: {devices}, tx_power: 23 dBm, distance: {{uniform: [20 m, 120 m]}},
     cpu: {{frequency: {{uniform: [1 GHz, 3 GHz]}}, flops_per_cycle: 4}}}}
allocation: {{solver: equal}}
clock: {{mode: buffered, in_flight: {flight}, buffer: {buffer}, slot: {slot}}}
learning: {{dataset: none, model: mlp, batch_size: 10, method: {{name: fedavg}}}}
"""
CASES = {  # name -> (devices, in flight, buffer, slot, processes)
    "columns": (100_000, 10_000, 1_000, "until_used", False),
    "columns, one by one": (100_000, 10_000, 1_000, "until_arrival", False),
    "processes": (1_000, 100, 10, "until_used", True),
}


def cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def measure(name: str, jobs: int) -> None:
    """Print one line; run in a process of its own, whose peak memory it is."""
    devices, flight, buffer, slot, processes = CASES[name]
    rounds = max((jobs - flight) // buffer, 1)
    path = Path(tempfile.mkdtemp()) / "many.yaml"
    keys = {"rounds": rounds, "devices": devices, "flight": flight, "buffer": buffer, "slot": slot}
    path.write_text(CELL.format(**keys))
    if processes:
        edgesim.runs.play_rounds.needs_processes = lambda *a, **b: True
    before_s, before_kb = cpu_s(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = simulate(load(path))
    spent_s, rounds_table = cpu_s() - before_s, run.log.columns("rounds")
    done = int(sum(rounds_table["dispatched"]))
    kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    print(
        f"{name:20}{done:9}{spent_s:9.2f}{done / spent_s:11.0f}{rounds_table['time_s'][-1]:12.3f}"
        f"{kb / 1024:10.0f}",
        flush=True,
    )


def measure_floor(jobs: int) -> None:
    """Print the line of a loop that does nothing but order ends and draw devices."""
    devices, flight, *_ = CASES["columns, one by one"]
    rng, begin_s = np.random.default_rng(0), cpu_s()
    seconds, free = rng.uniform(1.0, 3.0, devices).tolist(), bytearray(b"\1") * devices
    at_work = [(seconds[k], k) for k in range(flight)]
    free[:flight] = bytes(flight)
    heapq.heapify(at_work)
    for tried in rng.integers(0, devices, (jobs, 8)).tolist():
        now_s, back = at_work[0]
        free[back] = True
        k = next(k for k in tried if free[k])
        free[k] = False
        heapq.heapreplace(at_work, (now_s + seconds[k], k))
    spent_s = cpu_s() - begin_s
    print(f"{'floor':20}{jobs:9}{spent_s:9.2f}{jobs / spent_s:11.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=300_000)
    parser.add_argument("--case", choices=list(CASES))
    given = parser.parse_args()
    if given.case:
        measure(given.case, given.jobs)
        return
    print(f"{'':20}{'jobs':>9}{'CPU s':>9}{'jobs/s':>11}{'simulated s':>12}{'MiB more':>10}")
    for name, fewer in zip(CASES, (1, 1, 20), strict=True):
        own = [sys.executable, __file__, "--case", name, "--jobs", str(given.jobs // fewer)]
        subprocess.run(own, check=True)
    measure_floor(given.jobs)
    begin, total = time.process_time(), 0
    for i in range(10_000_000):
        total += i
    print(f"a loop of 1e7 additions takes {time.process_time() - begin:.2f} s of CPU")


if __name__ == "__main__":
    main()

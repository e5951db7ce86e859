"""CPU seconds of `edgesim report`, and of what is around a single round.

    python benchmarks/reports.py

Prints seconds of CPU (user and system), importing included: a report of the five runs of
scenarios/demo.yaml (to reach: 6), one of a sweep of 96 points without training (to reach: 20), and
a run of one round of one scheme beside the import of torch alone (to reach: 2.5 in all).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "scenarios" / "demo.yaml"
SWEPT = (
    "learning.dataset=none",
    "~learning.partition",
    "rounds=10",
    "budget.latency_threshold=15ms,20ms,25ms,30ms",
    "network.bandwidth=3.2MHz,4.8MHz,6.4MHz",
    *("--only", "joint", "--only", "equal bandwidth", "--seeds", "0-3", "--workers", "1"),
)  # 96 points


def cpu_s(*arguments: object) -> float:
    """CPU seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else the modules are compiled every time
    command = [sys.executable, *map(str, arguments)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def least_s(*arguments: object, repeats: int = 3) -> float:
    return min(cpu_s(*arguments) for _ in range(repeats))


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        edgesim = ("-m", "edgesim")
        five, swept, one, out = (Path(place) / name for name in ("five", "swept", "one", "out"))
        cpu_s(*edgesim, "run", DEMO, "--out", five, "--quiet")
        cpu_s(*edgesim, "sweep", DEMO, *SWEPT, "--out", swept, "--quiet")
        of_one = ("run", DEMO, "rounds=1", "--only", "joint", "--out", one, "--fresh", "--quiet")
        for what, seconds in (
            ("report of five runs", least_s(*edgesim, "report", five, "--out", out)),
            ("report of 96 points", least_s(*edgesim, "report", swept, "--out", out)),
            ("run of one round", least_s(*edgesim, *of_one)),
            ("import of torch alone", least_s("-c", "import torch")),
        ):
            print(f"{what:24}{seconds:8.2f} s of CPU")


if __name__ == "__main__":
    main()

"""A program that kills runs of its own by SIGKILL at chosen events: killed_runs.py NAME.yaml ...

For each scenario it leaves the folder NAME/whole of a run that nobody disturbed, and NAME/killed of
one that was killed twice and then ended. It prints (signal, next version) of every kill.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from pathlib import Path

import simpy

from edgesim import load, simulate

STEP = simpy.Environment.step


def events_of(scenario: Path, out: Path, last: float = math.inf) -> int:
    """Run a scenario; the number of its events. The process is killed at the event ``last``."""
    count = 0

    def step(env: simpy.Environment) -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
        STEP(env)

    simpy.Environment.step = step
    simulate(load(scenario), out=out)
    return count


def killed_at(event: int, scenario: Path, out: Path) -> tuple[int, int]:
    """(signal that ended a process which runs the scenario, versions that it has stored)."""
    if (child := os.fork()) == 0:
        try:
            events_of(scenario, out, event)
        finally:
            os._exit(1)
    ended = os.waitpid(child, 0)[1]
    header = (out / "checkpoint" / "state.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    facts = json.loads(header[8 : 8 + size])["__metadata__"]["facts"]
    return os.WTERMSIG(ended), json.loads(facts)["g"] + 1


if __name__ == "__main__":
    kills = {}
    for scenario in map(Path, sys.argv[1:]):
        folder = scenario.with_suffix("")
        events = events_of(scenario, folder / "whole")
        at = events // 2, events // 4  # the second one is counted from the checkpoint on
        kills[scenario.stem] = [killed_at(each, scenario, folder / "killed") for each in at]
        events_of(scenario, folder / "killed")
    print(json.dumps(kills))

"""Every device is busy, waits, is off, is repaired or is away at every instant, under every clock,
and its joules are those of these times."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from edgesim.clocks.rules import Buffered, Deadline, OverCommit, Rules, Windowed
from edgesim.clocks.server_failures import ServerFailures, failing
from edgesim.clocks.speed_tiers import SpeedTiers, TimeTriggered
from edgesim.presence.absences import Absences
from edgesim.presence.presence import Part, Presence
from edgesim.presence.sessions import on_off
from edgesim.seeds import Seeds

DURATIONS = 0.7, 1.1, 1.9, 2.6
CLOCKS = {
    "synchronous": Rules(),
    "deadline": Deadline(),
    "overcommit": OverCommit(needed=2, asked=3),
    "buffered": Buffered(slots=3, buffer=2),
    "until used": Buffered(slots=3, buffer=2, until_used=True),
    "asynchronous": Buffered(slots=4, max_staleness=1, from_now=True),
    "window": Windowed(slots=3, window_s=1.5),
    "tt-fed": TimeTriggered(slots=4, window_s=1.0, needs=(1, 2, 2, 3)),
    "speed-tiers": SpeedTiers(slots=4, tier_of=(0, 0, 1, 1)),
}
FAILS, SERVER = {"failure_rate_hz": 0.3}, (4.0, 0.9)
# fleet, what becomes of a job whose device leaves or crashes, (up, repair) of the server
FAULTS = {
    "none": ({}, None, None),
    "failures": (FAILS, None, None),
    "server": ({}, None, SERVER),
    "failures and server": (FAILS, None, SERVER),
    "lost": (FAILS, "lost", None),
    "restarted": (FAILS, "restart", None),
    "resumed, and server": (FAILS, "resume", SERVER),
    "availability": (FAILS | {"availability": 0.7}, None, None),
}
WATTS = {"train": 1.0, "idle": 0.25, "off": 0.0, "repair": 0.0, "download": 0.0, "upload": 0.0}


def absences(then):
    """Devices that are there for 3 s and away for 2 s on average, and are repaired in 0.3 s."""
    count = len(DURATIONS)
    chains = on_off(np.full(count, 3.0), np.full(count, 2.0), Seeds(5), "test")
    there = Presence(count, [Part(chains, np.arange(count))])
    return Absences(there, (then,) * count, (then,) * count, np.full(count, 0.3))


def away_s(k, ends_s, busy, fleet, there):
    """How long device k was away: by its presence, or while it was free and not drawn, s.

    Args:
        k: the device.
        ends_s: of the versions [G], s.
        busy: (start, end) of its computations, s.
        fleet: properties of the devices.
        there: its presence, or None.
    """
    if there is not None:
        stays = there.presence.intervals(k, 0.0, ends_s[-1])
        return ends_s[-1] - math.fsum(end_s - start_s for start_s, end_s in stays)
    away = []
    for g, (begin_s, end_s) in enumerate(pairwise([0.0, *ends_s])):
        drawn = Seeds(0).stream("availability", round=g).random(len(DURATIONS))[k]
        if drawn >= fleet.get("availability", 1.0):
            inside = (min(until_s, end_s) - max(from_s, begin_s) for from_s, until_s in busy)
            away.append(end_s - begin_s - math.fsum(max(each, 0.0) for each in inside))
    return math.fsum(away)


@pytest.mark.slow
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("clock", CLOCKS)
def test_the_times_of_a_device_are_the_time_of_the_run(traced, clock, faults):
    fleet, then, server = FAULTS[faults]
    there = absences(then) if then else None
    log = traced(
        DURATIONS,
        CLOCKS[clock],
        12,
        absences=there,
        budget_s=2.2,
        failures=server and ServerFailures(failing(*server, Seeds(1)), save_every=2),
        capacitance=1.0,  # 1 W while it computes
        idle_power_w=WATTS["idle"],
        **fleet,
    ).log
    rounds, spans = log.columns("rounds"), log.columns("spans")
    spans.setdefault("job", [-1] * len(spans["device"]))
    names = "device", "start_s", "end_s", "phase", "energy_j", "job"
    ended = log.columns("device_rounds")
    status = dict(zip(ended.get("job", ()), ended["status"], strict=False))
    rows = sorted(zip(*(spans[name] for name in names), strict=True))
    for k in range(len(DURATIONS)):
        own = [row[1:] for row in rows if row[0] == k]
        lasts = [end_s - start_s for start_s, end_s, *_ in own]
        busy = [(start_s, end_s) for start_s, end_s, phase, *_ in own if phase == "train"]
        away = away_s(k, rounds["time_s"], busy, fleet, there)
        assert math.fsum([*lasts, away]) == pytest.approx(rounds["time_s"][-1], rel=1e-9)
        for one, two in pairwise(own):
            assert two[0] >= one[1] - 1e-9  # one thing at a time
            if one[4] >= 0 and two[2] in ("idle", "off"):
                failed = status[one[4]] == "failed" and not CLOCKS[clock].overlapping
                assert two[2] == ("off" if failed else "idle")
        joules = math.fsum(WATTS[row[2]] * last for row, last in zip(own, lasts, strict=True))
        assert math.fsum(row[3] for row in own) == pytest.approx(joules, rel=1e-9)
    assert math.fsum(spans["energy_j"]) == pytest.approx(math.fsum(rounds["energy_j"]), rel=1e-9)
    lost = "failed" in ended["status"]
    assert ("off" in spans["phase"]) == (lost and not CLOCKS[clock].overlapping)

"""Many devices: the table is made edge by edge, and rare devices one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.presence.presence import Part, Presence
from edgesim.presence.sessions import on_off
from edgesim.presence.timeline import Timeline
from edgesim.presence.trace_file import traced
from edgesim.seeds import Seeds

DEVICES = 60
TOUCHING = np.array([[1, 1, 2, 3, 3, 4], [0, 1, 1, 1, 2, 9], [0, 0, 1, 2, 3, 4]], dtype=float).T


def members(first, count):
    place = np.arange(DEVICES) - first
    return np.where((place >= 0) & (place < count), place, -1)


def presence():
    """Devices 0-19 by chance, 10-24 in a group, 30-33 traced, 40-42 with two edges at once."""
    chains = on_off(np.linspace(1.0, 3.0, 20), np.linspace(0.5, 2.0, 20), Seeds(1), "chains")
    group = on_off(np.array([4.0]), np.array([1.0]), Seeds(1), "group")
    trace = traced([[(0.0, 1.0), (2.0, 5.0)], [], [(1.0, 3.0)], [(0.0, math.inf)]])
    touching = Timeline(
        np.array([True, False, True]),
        lambda n, before_s: TOUCHING[n] if n < len(TOUCHING) else np.full(3, np.inf),
    )
    in_group = np.where((np.arange(DEVICES) >= 10) & (np.arange(DEVICES) < 25), 0, -1)
    return Presence(
        DEVICES,
        [
            Part(chains, members(0, 20)),
            Part(trace, members(30, 4)),
            Part(touching, members(40, 3)),
            Part(group, in_group),
        ],
    )


@pytest.mark.parametrize("end_s", [0.0, 0.5, 3.0, 17.0])
def test_the_table_has_the_intervals_of_every_device(end_s):
    there = presence()
    moving = [*range(25), *range(30, 34), *range(40, 43)]
    rows = [(k, *interval) for k in moving for interval in there.intervals(k, 0.0, end_s)]
    assert list(zip(*there.table(end_s).values(), strict=True)) == rows
    assert bool(rows) == (end_s > 0.0)


def test_sessions_that_touch_are_one():
    """Edges at 1, 1, 2, 3, 3, 4 of a device that begins on: there in [0, 2) and [4, inf)."""
    table = presence().table(6.0)
    rows = list(zip(*table.values(), strict=True))
    assert [row[1:] for row in rows if row[0] == 40] == [(0.0, 2.0), (4.0, 6.0)]


def test_states_at_any_instant_are_those_of_the_intervals():
    """Instants forwards and then backwards, after which the timeline begins anew."""
    there, times_s = presence(), [0.0, 0.3, 1.0, 2.5, 9.0, 0.7]
    for time_s in times_s:
        own = [bool(there.intervals(k, time_s, time_s + 1e-9)) for k in range(DEVICES)]
        moving = there.at(time_s)
        assert moving.tolist() == own


@pytest.mark.slow
def test_what_is_asked_of_single_devices_does_not_grow_with_their_number(tmp_path, monkeypatch):
    from edgesim import load, simulate

    path = tmp_path / "many.yaml"
    path.write_text("""
name: many
rounds: 5
network:
  bandwidth: 4 GHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}}
devices:
  - count: 100
    tx_power: 23 dBm
    cpu: {frequency: 1 GHz, flops_per_cycle: 4}
    presence: {kind: onoff, on: 30 ms, off: 10 ms}
allocation: {solver: equal}
clock: {mode: buffered, in_flight: 20, buffer: 5}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
""")
    asked, state_of = [], Timeline.state_of
    monkeypatch.setattr(Timeline, "state_of", lambda *a: (asked.append(1), state_of(*a))[1])
    counts = {}
    for devices in (200, 4000):
        asked.clear()
        run = simulate(load(path, [f"devices.0.count={devices}"]))
        jobs = run.rounds.dispatched.sum()
        counts[devices] = len(asked) / jobs
        assert len(asked) <= 8 * jobs
    assert counts[4000] <= 2.0 * counts[200]

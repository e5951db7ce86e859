"""Devices that wait for their turn, or for the band: busy, idle and absent are all of the time."""

from __future__ import annotations

import pytest

from edgesim import load, simulate

CELL = """
name: waiting
rounds: 7
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices:
  - count: 5
    tx_power: 23 dBm
    idle_power: 0.5 W
    cpu: {frequency: [2 GHz, 100 MHz, 1 GHz, 20 MHz, 700 MHz], flops_per_cycle: 1}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}
"""
COMING = "devices.0.presence={kind: onoff, on: 300 ms, off: 100 ms}"
EDF = "network.uplink.share=edf", "budget.latency_threshold=100 ms"
WAITING = {
    "tt-fed": ("clock={mode: tt-fed, window: 60 ms}",),
    "tt-fed, coming and going": ("clock={mode: tt-fed, window: 60 ms}", COMING),
    "speed-tiers": ("clock={mode: speed-tiers, speed_tiers: 2}",),
    "edf, rounds": EDF,
    "edf, buffered": (*EDF, "clock={mode: buffered, in_flight: 3, buffer: 2}"),
    "edf, coming and going": (*EDF, "clock={mode: asynchronous, in_flight: 3}", COMING),
}


@pytest.fixture
def waiting(tmp_path):
    """waiting(*changes) -> five devices, the slowest of which takes 100 times as long."""
    path = tmp_path / "waiting.yaml"
    path.write_text(CELL)
    return lambda *changes: load(path, [*changes])


@pytest.mark.parametrize("changes", WAITING.values(), ids=WAITING)
def test_busy_idle_and_absent_are_all_of_the_time(waiting, changes):
    run = simulate(waiting(*changes))
    end_s, spans = run.rounds.time_s.iloc[-1], run.spans
    for k in range(5):
        own = spans[spans.device == k].sort_values("start_s")
        seconds = (own.end_s - own.start_s).sum()
        there = run.presence[run.presence.device == k]
        if COMING in changes:
            seconds += end_s - (there.end_s - there.start_s).sum()
        assert seconds == pytest.approx(end_s, rel=1e-9), k
        # one after the other: a sum alone would not see a gap that an overlap makes up for
        assert (own.start_s.to_numpy()[1:] >= own.end_s.to_numpy()[:-1] - 1e-9).all()
    idle = spans[spans.phase == "idle"]
    idle_s = idle.end_s - idle.start_s
    assert (idle_s > 0.0).any() and idle.energy_j.sum() == pytest.approx(0.5 * idle_s.sum())


@pytest.mark.slow
def test_a_slow_tier_waits_until_its_slot_begins(waiting):
    """A device of tier m that needs T waits for m W - T in each of its turns."""
    run = simulate(waiting(*WAITING["tt-fed"], "rounds=60"))
    first = run.device_rounds.drop_duplicates("device").set_index("device").finish_s
    ends_s = run.rounds.time_s.iloc[-1]
    for k, needed_s in first.items():
        turn_s = 0.06 * -(-needed_s // 0.06)
        own = run.spans[(run.spans.device == k) & (run.spans.phase == "idle")]
        turns = ends_s // turn_s
        assert turns >= 2
        waited_s = (own.end_s - own.start_s)[own.end_s <= turns * turn_s + 1e-9].sum()
        assert waited_s == pytest.approx(turns * (turn_s - needed_s), rel=1e-6)


def test_an_upload_waits_for_the_band_at_idle_power(waiting):
    """edf sends one upload after the other: joules are those of the air time and of waiting."""
    run = simulate(waiting(*EDF, "devices.0.cpu.frequency=1 GHz"))
    uploads = run.spans[(run.spans.phase == "upload") & (run.spans["round"] == 0)]
    seconds = sorted((uploads.end_s - uploads.start_s).tolist())
    # all begin together and have the same deadline: the n-th ends after n times on the whole band
    assert seconds == pytest.approx([n * seconds[0] for n in range(1, 6)], rel=1e-9)
    joules = sorted(uploads.energy_j.tolist())
    sent_w = 10**-0.7
    expected = [sent_w * seconds[0] + 0.5 * (n - 1) * seconds[0] for n in range(1, 6)]
    assert joules == pytest.approx(expected, rel=1e-9)

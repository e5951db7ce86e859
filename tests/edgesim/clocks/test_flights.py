"""The desk of the server: what belongs to one instant, and in which order it is taken in."""

import pytest
import simpy

from edgesim import simulate
from edgesim.clocks.flights import Desk, Flight, in_device_order
from fl.contracts import Grant
from fl.methods import resolve


def test_the_end_of_an_instant_comes_behind_chains_of_events_of_no_length():
    env, order = simpy.Environment(), []
    desk = Desk(env, 1)

    def server():
        yield env.timeout(1.0)
        yield desk.end_of_this_instant()
        order.append("server")

    def device():
        yield env.timeout(1.0)
        for i in range(5):
            yield env.timeout(0.0)
            order.append(i)

    env.process(server())
    env.process(device())
    env.run()
    assert order == [0, 1, 2, 3, 4, "server"] and env.now == 1.0


def test_jobs_are_sorted_by_device_and_then_by_dispatch():
    grants = [Grant(k, 0.1, 0.0, 1.0, 1.0) for k in (2, 0, 2)]
    flights = [Flight(i, None, grant, None, 0, 0.0) for i, grant in enumerate(grants)]
    assert [each.number for each in in_device_order(flights[::-1])] == [1, 0, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "clock", ["asynchronous, max_staleness: 2", "buffered, buffer: 2, max_staleness: 0"]
)
@pytest.mark.parametrize("name", ["scaffold", "feddyn"])
def test_the_servers_memory_stays_the_mean_where_updates_are_discarded(
    three, clock, name, monkeypatch
):
    """The quick device makes all versions; those of the slow ones come too late."""
    states = []
    method = resolve(name)
    monkeypatch.setattr(
        method, "observe", lambda self, state, report: states.append(state) or state
    )
    given = f"clock={{mode: {clock}}}", "~budget", "rounds=40"
    learns = f"learning.method={{name: {name}, lr: 0.1, local_steps: 1}}"
    run = simulate(three(*given, learns, "devices.0.cpu.frequency=[2 GHz, 10 MHz, 6 MHz]"))
    assert run.rounds["discarded"].sum() > 2
    compared = 0
    for state, held in zip(states[:-1], run.rounds["held"], strict=False):
        if held == 0 and len(state.local) > 1:
            mean = sum(state.local.values()) / 3
            factor = 1.0 if name == "scaffold" else 0.01
            memory = factor * state.memo["control" if name == "scaffold" else "drift"]
            assert float((memory - mean).norm()) < 1e-3 * float(mean.norm())
            compared += 1
    assert compared > 2

"""The desk of the server: what belongs to one instant, and in which order it is taken in."""

import simpy

from edgesim.clocks.flights import Desk, Flight, in_device_order
from fl.contracts import Grant


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

"""Work and bits that are known only after training."""

import math
from dataclasses import replace

import numpy as np

from edgesim.network.downlink.broadcast import BroadcastDownlink
from tests.edgesim.network.fleets import make_fleet

NOISE_W, BANDWIDTH_HZ, BUDGET_S = 1e-14, 2e8, 0.025


def devices(cpu_hz=(3e9,), tx_power_w=0.63, **changes):
    return make_fleet(tx_power_w=tx_power_w, cpu_hz=list(cpu_hz), cycles_per_weight=5, **changes)


def hand(share, rho):
    return lambda problem: (np.array(share), np.array(rho))


def test_bits_known_only_after_training_are_asked_for_at_the_upload(engine):
    from edgesim.engine.rounds import Progress, upload
    from fl.contracts import Grant

    asked = []

    class Late:
        job = engine.method().configure((), engine_view(), Grant(0, 1.0, 0.0, 1e9, 1.0))

        def bits_up(self):
            asked.append(True)
            return 0.0

    played = engine.play(devices(), 1e-10)
    process = upload(played.cell, Late(), Grant(0, 1.0, 0.0, 1e9, 1.0), played.log, Progress())
    assert not asked
    env = played.env
    env.run(env.process(process))
    assert asked


def test_work_known_only_after_training_gives_the_same_round(engine):
    """Work that is known before is never asked of the training; either way the bytes are the
    same.
    """
    world = {
        "fleet": devices((1e9, 2e9)),
        "path_gain": 1e-10,
        "rounds": range(3),
        "coherence_s": 3e-3,
    }
    before, after = (
        engine.play(**world, method=engine.method(known_before=known)) for known in (True, False)
    )
    assert [update.forced for update in before.updates] == [False] * 6
    assert [update.forced for update in after.updates] == [True] * 6
    np.testing.assert_equal(after.log.tables, before.log.tables)


def test_the_work_is_asked_for_when_the_computation_begins(engine):
    """Deadline, broadcast of 30 ms: nobody gets as far as to compute, nothing is trained."""
    method = engine.method(
        known_before=False, bits_down=3e-2 * 2e8 * math.log2(1 + 1e-10 * 1.0 / NOISE_W)
    )
    downlink = lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=1.0)  # noqa: E731
    method = replace(method, personal_steps=0, warmup_steps=0, rho_bounds=(0.0, 0.0))
    cut = engine.play(
        devices((3e9, 3e9)), 1e-10, method, solver="equal", clock="deadline", downlink=downlink
    )
    assert [(update.forced, update.aborted) for update in cut.updates] == [(False, True)] * 2
    waited = engine.play(devices((3e9, 3e9)), 1e-10, method, solver="equal", downlink=downlink)
    assert [(update.forced, update.aborted) for update in waited.updates] == [(True, False)] * 2


def test_who_is_cut_off_while_it_computes_is_aborted_although_it_was_trained(engine):
    shares, method = hand([0.8, 0.001, 0.1], [0.9, 0.5, 0.5]), engine.method(known_before=False)
    played = engine.play(devices((3e9, 3e9, 3e8)), 1e-10, method, solver=shares, clock="deadline")
    assert [update.forced for update in played.updates] == [True] * 3
    assert [update.aborted for update in played.updates] == [False, False, True]
    assert played.state == (
        ("retain", 0, (0, 1)),
        ("aggregate", 0, (0,)),
        ("observe", 0, (0, 1, 2)),
    )


def engine_view():
    from fl.contracts import View

    empty, ones = np.zeros(1), np.ones(1)
    return View(0, 0.0, np.array([0]), empty, empty, empty, 1.0, ones, ones)

"""Who takes part in a round, who cannot, and how long a round without anybody is."""

import math

import pytest

from edgesim.engine.participants import NoParticipantsError
from tests.edgesim.network.fleets import make_fleet

BUDGET_S = 0.025


def devices(cpu_hz=(3e9,), tx_power_w=0.63, **changes):
    return make_fleet(tx_power_w=tx_power_w, cpu_hz=list(cpu_hz), cycles_per_weight=5, **changes)


def test_a_device_that_cannot_compute_in_time_is_left_out_by_name(engine):
    played = engine.play(
        devices((1e8, 3e9)), 1e-10
    )  # 0.65e6 weight steps x 5 / 1e8 = 32.5 ms > 25 ms
    rows = played.log.table("device_rounds")
    assert rows.status.tolist() == ["infeasible", "arrived"]
    assert played.log.table("rounds").infeasible[0] == 1
    assert played.log.table("rounds").selected[0] == 2
    assert played.state[-1] == ("observe", 0, (0, 1))


def test_when_nobody_can_take_part_the_round_lasts_the_threshold(engine):
    for clock in ("synchronous", "deadline"):
        played = engine.play(devices((1e8, 1e8)), 1e-10, clock=clock, rounds=range(2))
        assert played.env.now == 2 * BUDGET_S
        assert played.log.table("rounds").selected.tolist() == [2, 2]


def test_when_nobody_is_there_and_nothing_ends_the_round_a_sentence_says_so(engine):
    absent = devices((3e9,), availability=1e-12)
    with pytest.raises(NoParticipantsError, match="round 0"):
        engine.play(absent, 1e-10, solver="equal", budget_s=math.inf)
    assert engine.play(absent, 1e-10).log.table("rounds").selected.tolist() == [0]

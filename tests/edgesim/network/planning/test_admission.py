"""Who is left out of a round, and that the others are planned without."""

import math

import pytest

from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.downlink.sector_downlink import SectorDownlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.sector_channel import SectorChannel
from tests.edgesim.network.fleets import make_fleet

NOISE_W, BUDGET_S = 1e-14, 0.025


def devices(cpu_hz=(3e9,), tx_power_w=0.63, **changes):
    return make_fleet(tx_power_w=tx_power_w, cpu_hz=list(cpu_hz), cycles_per_weight=5, **changes)


@pytest.mark.parametrize(
    ("gains", "clocks_hz", "left_out"),
    [
        ([1e-10, 1e-10, 1e-15], [3e9, 3e9, 3e9], [2]),  # 1.5 s to receive
        ([1e-10, 1e-10, 1e-11], [3e9, 3e9, 1e8], [2]),  # 32.5 ms to compute
        ([1e-10, 1e-10, 1e-15], [3e9, 4e8, 3e9], [2]),  # 15.1 and 8.1 ms are in time without it
        ([1e-10, 1e-10, 1e-11], [3e9, 4e8, 3e9], [1]),  # 20.1 and 8.1 ms are not, with it
    ],
)
def test_who_is_left_out_keeps_nobody_waiting(engine, gains, clocks_hz, left_out):
    """40 Mbit take 15.1 ms at a gain of 1e-10 and 20.1 ms at 1e-11: the plan of the others counts
    with the weakest of them, and all its time is used.
    """
    downlink = lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=1.0)  # noqa: E731
    method = engine.method(bits_down=4e7)
    rows = engine.play(devices(clocks_hz), gains, method, downlink=downlink).log.table(
        "device_rounds"
    )
    assert rows.device[rows.status == "infeasible"].tolist() == left_out
    there = rows[rows.status == "arrived"]
    weakest = min(gain for k, gain in enumerate(gains) if k not in left_out)
    assert len(there) == 2
    assert there.download_s.to_numpy() == pytest.approx(
        4e7 / (2e8 * math.log2(1 + weakest / NOISE_W))
    )
    assert there.finish_s.to_numpy() == pytest.approx(BUDGET_S, rel=1e-9)


@pytest.mark.parametrize(
    ("rho_bounds", "gains", "clocks_hz"),
    [
        ((0.0, 0.0), [1e-10, 1e-10, 0.0], [3e9, 1e8, 3e9]),  # 32.5 ms to compute: it is late
        ((0.0, 0.5), [1e-10, 1e-10, 1e-11], [3e9, 3e9, 4e8]),  # needs 4.8 ms; 3.8 with it
    ],
)
def test_the_others_are_planned_as_if_who_is_left_out_were_not_there(
    engine, rho_bounds, gains, clocks_hz
):
    downlink = lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=1.0)  # noqa: E731
    given = {"downlink": downlink, "when_infeasible": "stop" if max(rho_bounds) else "stretch"}
    method = engine.method(bits_down=4e7, rho_bounds=rho_bounds)
    rows = engine.play(devices(clocks_hz), gains, method, **given).log.table("device_rounds")
    assert rows.device[rows.status == "infeasible"].tolist() == [2]


def test_no_plan_counts_with_turns_of_who_is_late_beside_the_rest(engine):
    """8 Mbit take 3.01 ms each. Device 2 computes for 13 ms: in time alone, not after three turns.

    Of 21.1 ms the others then have 14.0 to send in, where 12.5 are enough; beside a third turn they
    would have 11.0, for which `stop` refuses to plan.
    """
    couplings = Couplings([[1e-10]] * 3, [0] * 3)

    def downlink(env, channel):
        sector = SectorChannel(couplings, bandwidth_hz=2e8, noise_w_per_hz=NOISE_W / 2e8)
        return SectorDownlink(env, sector, couplings, 1.0, mode="unicast")

    method = engine.method(bits_down=8e6, rho_bounds=(0.0, 0.01))
    given = {"downlink": downlink, "budget_s": 0.0211, "when_infeasible": "stop"}
    played = engine.play(devices([3e9, 3e9, 2.5e8]), 1e-10, method, **given)
    rows = played.log.table("device_rounds")
    assert rows.status.tolist() == ["arrived", "arrived", "infeasible"]
    assert rows.download_s[:2].tolist() == pytest.approx([6.02e-3] * 2, rel=1e-3)
    assert played.log.stretched_rounds == 0

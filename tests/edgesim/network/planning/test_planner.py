"""Plans of a round: thresholds that do not fit, ratios that the method decides, roundings."""

import math

import numpy as np
import pytest

from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.downlink.sector_downlink import SectorDownlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.sector_channel import SectorChannel
from solvers import InfeasibleError, UncertifiedError
from tests.edgesim.network.fleets import make_fleet

NOISE_W, BANDWIDTH_HZ, BUDGET_S = 1e-14, 2e8, 0.025


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


def test_too_narrow_a_band_stretches_or_stops(engine):
    """rho is at most 0.1, and at T_th the rest does not fit: the least threshold that fits is
    planned for and met.
    """
    method = engine.method(rho_bounds=(0.0, 0.1))
    played = engine.play(devices([3e9] * 10), 1e-10, method)
    assert played.log.stretched_rounds == 1
    budget_s = played.log.tables["plans"]["budget_s"][0]
    assert budget_s > BUDGET_S
    assert played.log.table("device_rounds").finish_s.to_numpy() == pytest.approx(
        np.full(10, budget_s), rel=1e-6
    )
    assert set(played.log.table("device_rounds").status) == {"late"}
    with pytest.raises(InfeasibleError):
        engine.play(devices([3e9] * 10), 1e-10, method, when_infeasible="stop")


def test_a_plan_leaves_room_for_the_broadcast(engine):
    """40 Mbit at 2e8 Hz x log2(1 + ...) take some ms; finish is still T_th, because the plan
    knows of it.
    """
    downlink = lambda env, channel: BroadcastDownlink(env, channel, tx_power_w=1.0)  # noqa: E731
    played = engine.play(
        devices([3e9] * 4), [1e-10] * 3 + [1e-11], engine.method(bits_down=4e7), downlink=downlink
    )
    rows = played.log.table("device_rounds")
    assert rows.download_s.to_numpy() == pytest.approx(
        np.full(4, 4e7 / (2e8 * math.log2(1 + 1e-11 / NOISE_W)))
    )
    assert rows.download_s[0] > 0.01
    assert rows.finish_s.to_numpy() == pytest.approx(np.full(4, BUDGET_S), rel=1e-9)
    assert rows.bits_down.tolist() == pytest.approx([4e7] * 4)


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


def test_with_a_noise_density_equal_shares_still_meet_the_threshold(engine):
    played = engine.play(
        devices([3e9] * 5), 1e-10, solver="equal", noise_w_per_hz=1e-22, budget_s=0.015
    )
    rows = played.log.table("device_rounds")
    assert ((rows.rho > 0) & (rows.rho < 1)).all()
    assert rows.finish_s.to_numpy() == pytest.approx(np.full(5, 0.015), rel=1e-9)


def slow_download(env, channel):
    return BroadcastDownlink(env, channel, tx_power_w=1e-3, bandwidth_hz=1e4)


@pytest.mark.parametrize("solver", ["equal", "kkt"])
def test_a_method_that_decides_the_ratio_is_late_and_never_left_out(engine, solver):
    """The broadcast alone takes longer than the threshold; FedAvg-like costs still take part."""
    method = engine.method(personal_steps=0, warmup_steps=0, rho_bounds=(0.0, 0.0))
    played = engine.play(devices([3e9] * 3), 1e-10, method, solver=solver, downlink=slow_download)
    rows = played.log.table("device_rounds")
    assert (rows.download_s > BUDGET_S).all()
    assert rows.status.tolist() == ["late"] * 3
    assert rows.bits_up.tolist() == [32 * 4e5] * 3
    open_ratio = engine.play(devices([3e9] * 3), 1e-10, solver=solver, downlink=slow_download)
    assert open_ratio.log.table("device_rounds").status.tolist() == ["infeasible"] * 3


def test_stop_holds_for_plans_that_no_solver_bounds(engine):
    method = engine.method(rho_bounds=(0.0, 0.0))
    with pytest.raises(
        InfeasibleError,
        match=r"devices 0, 1 would be up to .* s later than the threshold of 0.002 s",
    ):
        engine.play(
            devices([3e9] * 2), 1e-10, method, solver="equal", budget_s=2e-3, when_infeasible="stop"
        )
    with pytest.raises(InfeasibleError, match="device 0 would be up to"):
        engine.play(
            devices([3e9]), 1e-10, method, solver="equal", budget_s=1e-3, when_infeasible="stop"
        )
    engine.play(
        devices([3e9] * 2), 1e-10, method, solver="equal", budget_s=1.0, when_infeasible="stop"
    )


def test_an_allocators_rounding_never_exceeds_the_band(engine):
    rounding = lambda problem: (np.full(4, (1 + 9e-10) / 4), np.full(4, 0.5))  # noqa: E731
    played = engine.play(devices([3e9] * 4), 1e-10, solver=rounding)
    assert sum(played.log.table("device_rounds").share) <= 1 + 1e-12


def test_a_device_without_which_energy_has_no_choice_is_named_by_its_own_number(engine):
    """Device 0 is out of reach and left out, so that device 2 is the solver's second."""
    method = engine.method(personal_steps=0, warmup_steps=0, rho_bounds=(0.0, 0.0))
    with pytest.raises(UncertifiedError, match=r"device 2 alone 100 %.*, or leave device 2 out"):
        engine.play(devices([3e9] * 3), [0.0, 1e-10, 1e-24], method, solver="energy")

"""Plans of a round: thresholds that do not fit, ratios that the method decides, roundings."""

import math

import numpy as np
import pytest

from edgesim.network.downlink.broadcast import BroadcastDownlink
from solvers import InfeasibleError, InvalidAllocationError, UncertifiedError
from solvers.acceptance import certified_solution
from tests.edgesim.network.fleets import make_fleet

NOISE_W, BUDGET_S = 1e-14, 0.025


def devices(cpu_hz=(3e9,), tx_power_w=0.63, **changes):
    return make_fleet(tx_power_w=tx_power_w, cpu_hz=list(cpu_hz), cycles_per_weight=5, **changes)


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


def test_a_device_without_which_energy_has_no_choice_is_named_by_its_own_number(engine):
    """Device 0 is out of reach and left out, so that device 2 is the solver's second."""
    method = engine.method(personal_steps=0, warmup_steps=0, rho_bounds=(0.0, 0.0))
    with pytest.raises(UncertifiedError, match=r"device 2 alone 100 %.*, or leave device 2 out"):
        engine.play(devices([3e9] * 3), [0.0, 1e-10, 1e-24], method, solver="energy")


def test_a_device_of_which_an_answer_breaks_a_bound_is_named_by_its_own_number(engine):
    def refused(problem):
        return certified_solution(problem, np.array([0.5, 1.5]), problem.rho_max, 0.0, "mine")

    words = r"\(the shares add up to 2, above 1; device 2 has share 1.5, above 1\); check"
    with pytest.raises(UncertifiedError, match=words):
        engine.play(devices([3e9] * 3), [0.0, 1e-10, 1e-10], solver=refused)


def test_a_device_of_which_an_own_allocator_breaks_a_bound_is_named_by_its_own_number(engine):
    def greedy(problem):
        return [0.5, 1.5], problem.rho_max

    words = r"above 1; device 2 \(index 1 of its arrays\) has share 1.5, above 1\.$"
    with pytest.raises(InvalidAllocationError, match=words):
        engine.play(devices([3e9] * 3), [0.0, 1e-10, 1e-10], solver=greedy)

"""Devices that are absent, fail, or are added at the end."""

import math

import numpy as np
import pytest

from edgesim import load, simulate
from tests.edgesim.network.fleets import make_fleet


def devices(cpu_hz=(3e9,), tx_power_w=0.63, **changes):
    return make_fleet(tx_power_w=tx_power_w, cpu_hz=list(cpu_hz), cycles_per_weight=5, **changes)


def hand(share, rho):
    return lambda problem: (np.array(share), np.array(rho))


def test_availability_is_a_probability_per_round(engine):
    played = engine.play(
        devices([3e9] * 20, availability=0.3), 1e-10, solver="equal", rounds=range(20)
    )
    selected = played.log.table("rounds").selected
    assert selected.sum() == pytest.approx(120, abs=4 * math.sqrt(400 * 0.21))
    assert selected.nunique() > 3


def test_failures_are_exponential_and_lose_the_upload(engine):
    """25 ms at 40 failures a second: 1 - exp(-1) = 63 % of the devices fail."""
    played = engine.play(devices([3e9] * 20, failure_rate_hz=40.0), 1e-10, rounds=range(10))
    rows, rounds = played.log.table("device_rounds"), played.log.table("rounds")
    assert rounds.failed.sum() == pytest.approx(
        200 * (1 - math.exp(-1)), abs=4 * math.sqrt(200 * 0.23)
    )
    assert (rounds.failed + rounds.arrived == 20).all()
    received = [devices for hook, g, devices in played.state if hook == "aggregate"]
    arrived = rows[rows.status == "arrived"].groupby("round").device.apply(tuple).tolist()
    assert [each for each in received if each] == arrived
    whole = rows[rows.status == "arrived"].bits_up.max()
    assert (rows[rows.status == "failed"].bits_up <= whole).all()


def test_a_failed_device_frees_its_band_for_the_others(engine):
    """It fails within a millisecond, while it computes, and has not sent anything."""
    runs = [
        engine.play(
            devices([3e9] * 3, failure_rate_hz=[5000.0, 0, 0]),
            1e-10,
            share=share,
            solver=hand([0.4, 0.3, 0.3], [0.5] * 3),
        )
        for share in ("fixed", "reclaim")
    ]
    assert [run.log.table("rounds").failed[0] for run in runs] == [1, 1]
    assert runs[0].log.table("rounds").bits_up[0] == pytest.approx(2 * 0.5 * 32 * 4e5)
    assert runs[1].env.now < runs[0].env.now


def test_a_device_added_at_the_end_changes_nobodys_availability_or_failures(engine):
    few, more = (
        engine.play(
            devices([3e9] * count, failure_rate_hz=30.0, availability=0.7),
            1e-10,
            solver=lambda problem: (
                np.full(problem.num_devices, 0.1),
                np.full(problem.num_devices, 0.8),
            ),
            coherence_s=3e-3,
        ).log.table("device_rounds")
        for count in (4, 5)
    )
    same = more[more.device < 4]
    for column in ("device", "status", "finish_s", "bits_up"):
        np.testing.assert_array_equal(same[column], few[column])


def test_an_error_inside_a_device_ends_the_run(engine):
    from edgesim.network.flows.stalled_links import StalledLinkError

    with pytest.raises(StalledLinkError):
        engine.play(
            devices((3e9, 3e9)), 1e-10, solver=hand([0.0, 1.0], [0.5, 0.5]), clock="deadline"
        )


def test_devices_fail_at_other_times_in_another_round(engine):
    rows = engine.play(devices([3e9] * 8, failure_rate_hz=40.0), 1e-10, rounds=range(6)).log.table(
        "device_rounds"
    )
    failed = [
        tuple(rows[(rows["round"] == g) & (rows.status == "failed")].device) for g in range(6)
    ]
    assert len(set(failed)) > 1


CELL = """
name: six
rounds: 8
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - {count: 4, tx_power: 23 dBm, failure_rate: 20 Hz,
     cpu: {frequency: {uniform: [0.2 GHz, 2 GHz]}, cycles_per_weight: 2000}}
  - {count: 2, tx_power: 23 dBm, failure_rate: 0.00001 Hz,
     cpu: {frequency: 2 GHz, cycles_per_weight: 100}}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg, local_steps: 2}}
"""


@pytest.mark.parametrize("clock", ["{mode: synchronous}", "{mode: buffered, buffer: 2}"])
@pytest.mark.parametrize(
    "change", ["presence={kind: onoff, on: 1000 h, off: 1 ms}", "on_failure=resume"]
)
def test_what_may_happen_to_other_devices_moves_no_crash(tmp_path, clock, change):
    """Devices 4 and 5 come and go, or resume after a crash, and neither ever happens."""
    (tmp_path / "six.yaml").write_text(CELL)
    plain, run = (
        simulate(load(tmp_path / "six.yaml", [f"clock={clock}", *changes]))
        for changes in ((), (f"devices.1.{change}",))
    )
    assert plain.rounds.failed.sum() > 3
    for column in ("device", "status", "finish_s", "bits_up"):
        np.testing.assert_array_equal(run.device_rounds[column], plain.device_rounds[column])

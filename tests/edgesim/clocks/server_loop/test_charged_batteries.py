"""A server that waits until batteries are charged where nobody has energy for a job."""

from __future__ import annotations

import math

import pytest

from edgesim import load, simulate
from edgesim.engine.participants import NoParticipantsError
from edgesim.errors import InfeasibleScenarioError
from edgesim.network.hardware.battery import Battery, Charging
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.runs.run import feasibility
from tests.edgesim.clocks.server_loop.test_absences import absences
from tests.edgesim.network.fleets import make_fleet
from tests.edgesim.resumed_runs import assert_resumed

CELL = """
name: empty
rounds: 3
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - count: 2
    tx_power: 23 dBm
    cpu: {frequency: 2 GHz, cycles_per_weight: 2000, static_power: 1 W}
budget: {latency_threshold: none}
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 10, method: {name: fedavg, local_steps: 2}}
"""
CLOCKS = {
    "synchronous": "clock={mode: synchronous}",
    "overcommit": "clock={mode: overcommit, over_commit: 1}",
    "buffered": "clock={mode: buffered, buffer: 1}",
}
ALL = "learning.method.participants=2"
# enough for one job of 0.0184 J, and not for a second one
WEAK = "devices.0.battery={capacity: 2 J, start: 0.0125, charging: {power: 0.5 W}}"
# after one job it dies, and is back with 0.05 J
DIES = (
    "devices.0.battery={capacity: 2 J, start: 0.015, resume: 0.025, "
    "charging: {power: 1 W, period: 100 s, from: 10 s, lasts: 50 s}}",
    "devices.0.idle_power=1 W",
)


@pytest.fixture
def two(tmp_path):
    """two(*changes) -> two equal devices without a threshold."""
    (tmp_path / "two.yaml").write_text(CELL)
    return lambda *changes: load(tmp_path / "two.yaml", list(changes))


def job_j(run):
    """What a job takes, J."""
    return run.device_rounds["energy_j"].iloc[0]


def charged_s(run):
    """When 0.5 W have brought what is missing for a second job, s."""
    return (2.0 * job_j(run) - 0.025) / 0.5


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_run_begins_with_batteries_that_are_charged_first(two, clock):
    """A job takes 0.0184 J, of which 0.01 J are there, and 2 J are enough for any."""
    weak = WEAK.replace("0.0125", "0.005")
    table = feasibility(two(weak, CLOCKS[clock], ALL))
    weak_ones = "the plan of devices 0, 1 takes more than the battery holds"
    assert table.feasible
    assert table.note.startswith(
        f"2 of 2 devices cannot take part in round 0: {weak_ones} until it is charged"
    )
    run = simulate(two(weak, CLOCKS[clock], ALL))
    begun_s = run.spans[run.spans.phase == "download"].start_s.min()
    job = run.spans[run.spans.start_s >= begun_s].query("phase in ('train', 'upload')")
    takes_j = job[job.device == 0].energy_j.iloc[:2].sum()
    assert begun_s == pytest.approx((takes_j - 0.01) / 0.5, rel=1e-9)
    with pytest.raises(InfeasibleScenarioError, match=f"2 of 2 .* part: {weak_ones}$"):
        simulate(two(weak.replace(", charging: {power: 0.5 W}", ""), CLOCKS[clock], ALL))


@pytest.mark.parametrize("tail", ["1 ms", "1 s"])
def test_a_battery_that_holds_a_job_with_the_modem_after_its_download_is_enough(two, tail):
    """2 W while it listens on, for a part of the computation of some milliseconds or for all."""
    power = f"efficiency: 0.5, tail: {tail}, tail_power: 2 W, sleep_power: 0.1 W"
    modem = f"devices.0.radio={{circuit_power: 0.2 W, {power}}}"
    needed_j = float(job_j(simulate(two(modem, "rounds=1"))))

    def holding(joules):
        battery = f"devices.0.battery={{capacity: 2 J, start: {joules / 2.0!r}}}"
        return two(modem, battery, "rounds=1")

    assert simulate(holding(needed_j * (1.0 + 1e-9))).rounds["arrived"].tolist() == [2]
    with pytest.raises(InfeasibleScenarioError, match="takes more than the battery holds"):
        simulate(holding(needed_j * (1.0 - 1e-9)))


@pytest.mark.parametrize("clock", ["synchronous", "overcommit"])
def test_a_round_of_nobody_ends_when_the_first_battery_holds_what_its_job_takes(two, clock):
    run = simulate(two(CLOCKS[clock], WEAK, ALL))
    assert run.rounds[["arrived", "infeasible"]].values.tolist() == [[2, 0], [0, 2], [2, 0]]
    assert run.rounds["time_s"].iloc[1] == pytest.approx(charged_s(run), rel=1e-9)


def test_where_jobs_overlap_a_slot_is_taken_at_that_instant(two):
    run = simulate(two(CLOCKS["buffered"], WEAK, ALL, "rounds=4"))
    jobs = run.device_rounds
    started = jobs[jobs["status"] == "arrived"]
    again_s = charged_s(run)
    expected = pytest.approx([0.0, 0.0, again_s, again_s], rel=1e-9)
    assert started["dispatched_s"].tolist() == expected


def test_a_free_slot_is_taken_while_others_are_at_work(two):
    """The other device computes for hours, and no job ends meanwhile."""
    slow = "{count: 1, tx_power: 23 dBm, cpu: {frequency: 1 kHz, cycles_per_weight: 2000}}"
    cpu = "cpu: {frequency: 2 GHz, cycles_per_weight: 2000, static_power: 1 W}"
    quick = f"{{count: 1, tx_power: 23 dBm, {cpu}, battery: {WEAK.partition('=')[2]}}}"
    run = simulate(two(CLOCKS["buffered"], f"devices=[{quick}, {slow}]", ALL, "rounds=2"))
    arrived = run.device_rounds[run.device_rounds["status"] == "arrived"]
    assert arrived["device"].tolist() == [0, 0]
    assert arrived["dispatched_s"].tolist() == pytest.approx([0.0, charged_s(run)], rel=1e-9)


def test_a_device_that_dies_meanwhile_is_waited_for_until_it_is_back(two):
    run = simulate(two(*DIES))
    assert run.rounds["arrived"].tolist() == [2, 0, 2]
    assert run.rounds["time_s"].iloc[1] == pytest.approx(10.05, rel=1e-12)


def test_a_battery_that_is_charged_in_windows_is_waited_for(two):
    """0.5 W for a millisecond of 10 s: 0.0237 s of charging end in the window 23."""
    windows = WEAK.replace("0.5 W", "0.5 W, period: 10 s, from: 0 s, lasts: 1 ms")
    run = simulate(two(windows))
    expected_s = 230.0 + charged_s(run) - 23e-3
    assert 0.0 < charged_s(run) - 23e-3 < 1e-3
    assert run.rounds["time_s"].iloc[1] == pytest.approx(expected_s, rel=1e-9)


NEVER = {
    "not charged": (WEAK.replace("0.5 W", "0 W"),),
    "uses as much": (WEAK, "devices.0.idle_power=0.5 W"),
}


@pytest.mark.parametrize("changes", NEVER.values(), ids=NEVER)
def test_where_no_battery_is_ever_charged_enough_the_run_ends_with_a_sentence(two, changes):
    with pytest.raises(NoParticipantsError, match="or what their batteries hold"):
        simulate(two(*changes))


def test_nobody_waits_for_hours_where_others_are_only_not_available(two):
    """The device without a battery is there in half of the rounds, which a threshold ends."""
    cpu = "cpu: {frequency: 2 GHz, cycles_per_weight: 2000, static_power: 1 W}"
    weak = WEAK.partition("=")[2].replace("0.5 W", "1 uW")
    devices = [f"battery: {weak}", "availability: 0.5"]
    given = ", ".join(f"{{count: 1, tx_power: 23 dBm, {cpu}, {each}}}" for each in devices)
    run = simulate(two(f"devices=[{given}]", "budget.latency_threshold=1 s", "rounds=20"))
    empty = run.rounds[run.rounds["arrived"] == 0]
    assert len(empty) > 0
    assert empty["latency_s"].max() == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("clock", ["synchronous", "buffered"])
def test_nobody_waits_for_hours_where_another_has_no_connection_now(two, clock, tmp_path):
    """The device without a battery has one from the third second on, and the threshold is 1 s."""
    rates = "time [s],device 0 [Mbit/s],device 1 [Mbit/s]\n0,0,50\n3,50,50\n1000,50,50\n"
    (tmp_path / "rates.csv").write_text(rates)
    cpu = "cpu: {frequency: 2 GHz, cycles_per_weight: 2000, static_power: 1 W}"
    weak = "battery: " + WEAK.partition("=")[2].replace("0.0125", "0.001").replace("0.5 W", "1 uW")
    about = f"count: 1, tx_power: 23 dBm, {cpu}"
    devices = f"devices=[{{{about}}}, {{{about}, {weak}}}]"
    channel = "network.channel={trace: rates.csv}"
    run = simulate(two(CLOCKS[clock], devices, channel, "budget.latency_threshold=1 s", "rounds=4"))
    assert run.rounds["arrived"].tolist() == [0, 0, 0, 1]
    assert run.rounds["time_s"].iloc[2] == pytest.approx(3.0, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_resumed_run_gives_the_bytes_of_the_whole_one(two, clock, tmp_path):
    given = two(CLOCKS[clock], WEAK, ALL, "rounds=6")
    assert_resumed(given, tmp_path, (0, 1, 3), ("rounds.csv", "device_rounds.parquet"))


@pytest.mark.parametrize("returns_s, back_s", [(5.0, 11.0), (20.0, 20.0)])
def test_who_is_away_and_without_energy_is_back_at_the_later_instant(engine, returns_s, back_s):
    """1 J at 1 W is gone after a second; 1 W from second 10 on brings it back with 1 J."""
    battery = Battery(10.0, start=0.1, resume=0.1, charging=Charging(1.0, 100.0, 10.0, 50.0))
    fleet = make_fleet(tx_power_w=1.0, cpu_hz=[1e9], cycles_per_weight=1.0)
    there = absences([[(returns_s, math.inf)]])
    hardware = {0: DeviceHardware(idle_power_w=1.0, battery=battery)}
    played = engine.play(fleet, 1e-10, rounds=range(0), absences=there, hardware=hardware)
    played.env.run(until=2.0)
    assert played.cell.next_return_s(0, {}) == back_s

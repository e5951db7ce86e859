"""Allocations planned again, and finish times against Liu (28)."""

import numpy as np
import pytest

import edgesim
from edgesim.network.fading.processes import BlockFading
from edgesim.runs.setup import set_up
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED
from edgesim.verification.finish_times import check_finish
from edgesim.verification.planned_rounds import check_allocations, check_planned_rounds
from edgesim.verification.recorded_rounds import recorded_rounds

STILL = """
name: still
rounds: 3
network:
  noise: -169 dBm/Hz
  channel:
    path_loss: {model: log-distance, reference_loss: 40 dB, reference_distance: 1 m, exponent: 3.5}
devices:
  - count: 5
    tx_power: 20 dBm
    distance: [50 m, 120 m, 150 m, 200 m, 100 m]
    cpu: {frequency: 1 GHz, cycles_per_weight: 100}
budget: {latency_threshold: 300 ms}
learning:
  dataset: none
  model: mlp
  batch_size: 20
  method: {name: pruning-only, lr: 0.1, rho_max: 0.95}
"""


@pytest.fixture
def planned(static_run):
    """Setup, recorded rounds and their plans of the static run."""
    setup = set_up(edgesim.load(static_run / "scenario.yaml"))
    rounds = recorded_rounds(read_event_log(static_run))
    check, plans = check_allocations(setup, rounds)
    assert check.outcome == PASSED
    return setup, rounds, plans


@pytest.mark.parametrize("column", ["share", "rho"])
def test_a_share_or_ratio_that_the_solver_does_not_give_is_named(planned, column):
    setup, rounds, _ = planned
    rounds[1].rows.iloc[2, rounds[1].rows.columns.get_loc(column)] *= 1.0 + 1e-6
    check, _ = check_allocations(setup, rounds)
    assert check.outcome == FAILED
    assert check.detail.startswith(f"round 1: device 2: {column} is ")


def test_a_device_that_only_one_plan_leaves_out_is_named(planned):
    setup, rounds, _ = planned
    status = rounds[1].rows.columns.get_loc("status")
    rounds[1].rows.iloc[2, status] = "infeasible"
    check, _ = check_allocations(setup, rounds)
    assert check.detail == "round 1: left out in one of the plans: device 2"
    rounds[1].rows.iloc[0, status] = "infeasible"
    check, _ = check_allocations(setup, rounds)
    assert check.detail == "round 1: left out in one of the plans: devices 0, 2"


def test_finish_times_follow_from_cycles_and_bits(planned):
    """Liu (28): all finish at the threshold where nobody is pruned away or kept whole."""
    setup, rounds, plans = planned
    assert check_finish(setup, rounds, plans).outcome == PASSED
    pruned = rounds[0].rows[rounds[0].rows["rho"].between(1e-9, 1.0 - 1e-9)]
    assert len(pruned) and pruned["finish_s"].to_numpy() == pytest.approx(0.03, rel=1e-9)
    rounds[2].rows.iloc[0, rounds[2].rows.columns.get_loc("finish_s")] *= 1.0 + 1e-8
    check = check_finish(setup, rounds, plans)
    assert check.outcome == FAILED and check.detail.startswith("round 2, device 0: ")


def test_where_the_channel_fades_the_finish_is_not_checked(planned):
    setup, rounds, plans = planned
    setup.channel.fading = BlockFading(setup.seeds, len(setup.fleet), step_s=0.01)
    check = check_finish(setup, rounds, plans)
    assert check == ("finish, Liu (28)", SKIPPED, "the channel changes")


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("adaptation={rate: mcs, split: false}", (PASSED, "15 uploads within 1e-09")),
        ("adaptation={rate: mcs, errors: drawn}", (SKIPPED, "lost blocks are drawn")),
        (
            "carrier={frequency: 3.5 GHz, bandwidth: 5 MHz, tdd: DDDSU, tdd_clock: slots}",
            (SKIPPED, "uploads wait for their slots"),
        ),
    ],
)
def test_what_an_upload_got_is_no_wrong_finish(network, expected, tmp_path):
    """With all three good runs were called wrong: plans have a law, uploads one scheme at a time,
    repetitions and slots."""
    path = tmp_path / "cell.yaml"
    path.write_text(STILL)
    band = [] if "bandwidth" in network else ["network.bandwidth=3 MHz"]
    run = edgesim.simulate(edgesim.load(path, [f"network.{network}", *band]), out=tmp_path / "run")
    setup, rounds = set_up(run.scenario), recorded_rounds(read_event_log(tmp_path / "run"))
    _, plans = check_allocations(setup, rounds)
    check = check_finish(setup, rounds, plans)
    assert (check.outcome, check.detail) == expected


PRESENCE = "devices.0.presence={kind: onoff, on: 30 ms, off: 0.1 s}"
ALONE = [
    "devices.0.count=1",
    "network.channel={path_loss: {model: constant, loss: 100 dB}, "
    "fading: {kind: rayleigh, coherence: 20 ms}}",
]
EMPTIED = [  # by other programs beside the static power, of which a plan knows nothing
    "devices.0.cpu={frequency: 1 GHz, cycles_per_weight: 100000, static_power: 0.1 W, "
    "background: {to_busy: 2 Hz, to_idle: 0.5 Hz, busy_share: 0.1}}",
    "devices.0.battery={capacity: 2.6 J, resume: 0.95, charging: {power: 40 mW}}",
    "devices.0.idle_power=0 W",
    "network.bandwidth=50 kHz",
    "network.noise=-120 dBm",
    "network.channel.fading.coherence=0.5 s",
    "budget.latency_threshold=9 s",
    "learning.model=mlp",
    "learning.method={name: pruning-only, local_steps: 3}",
]


@pytest.mark.parametrize(
    ("seed", "changes", "outcome"),
    [
        (0, [PRESENCE, *ALONE], PASSED),
        (6, ["rounds=12", *ALONE, *EMPTIED], PASSED),
        (2, [PRESENCE, "rounds=2", "clock={mode: buffered, in_flight: 1}"], SKIPPED),
    ],
    ids=["waits for a return", "waits for energy", "one at a time"],
)
def test_plans_that_do_not_begin_with_their_round_are_no_wrong_ones(
    static_scenario, tmp_path, seed, changes, outcome
):
    """A plan is of the channel that its devices found, and another job of a version has the whole
    band, too, when the first one is over."""
    scenario = edgesim.load(static_scenario, ["rounds=6", *changes])
    run = edgesim.simulate(scenario, seed=seed, out=tmp_path / "run")
    begun = run.spans[run.spans.phase == "download"]
    assert (begun.start_s.to_numpy() > np.array([0.0, *run.rounds.time_s])[begun["round"]]).any()
    tables = read_event_log(tmp_path / "run")
    allocations, _ = check_planned_rounds(tmp_path / "run", tables, None, False)
    assert allocations.outcome == outcome, allocations.detail


def test_shares_beyond_the_band_and_weak_certificates(static_run):
    tables = read_event_log(static_run)
    table = tables["device_rounds"]
    table["share"] += 0.1
    (check,) = check_planned_rounds(static_run, tables, None, False)
    assert check.outcome == FAILED and check.detail.startswith("round 0: the shares sum to 1.3")
    tables = read_event_log(static_run)
    tables["rounds"].loc[1, "solver_residual"] = 1e-2
    (check,) = check_planned_rounds(static_run, tables, None, False)
    assert check.detail == "round 1: the residual of the certificate is 0.01"


def test_a_demand_that_reads_the_state_is_not_planned_again(static_scenario, static_run):
    rounds = recorded_rounds(read_event_log(static_run))
    options = ["learning.method={name: refl, lr: 0.1}", "learning.dataset=digits"]
    options += ["learning.partition={kind: labels, labels_per_device: 3}"]
    setup = set_up(edgesim.load(static_scenario, options))
    check, plans = check_allocations(setup, rounds)
    assert check.outcome == SKIPPED and "a demand reads the state" in check.detail and not plans

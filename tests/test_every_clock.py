"""Every method under the clocks with overlapping jobs: what they have in common with rounds."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import simulate
from edgesim.clocks import clock_choice
from edgesim.errors import EdgesimError
from edgesim.runs.setup import set_up
from edgesim.scenario.clock.clock_schema import ClockSection
from fl.methods import available, resolve

THREE = (
    "devices.0.count=3",
    "devices.0.cpu.frequency=[2 GHz, 1 GHz, 300 MHz]",
    "devices.0.model_budget=[1, 0.25, 0.25]",
    "budget.latency_threshold=20 s",
    "learning={dataset: digits, partition: {kind: labels, labels_per_device: 3}, "
    "samples_per_device: 10, model: mlp, batch_size: 10, method: {name: fedavg}}",
)
TWO_PARTS = "personal_lr: 0.05, global_lr: 0.05, personal_steps: 2, global_steps: 2"
PARAMS = {
    "liu": TWO_PARTS,
    "fedalt": TWO_PARTS,
    "fedsim": TWO_PARTS,
    "fedmap": "phase_rounds: 1, local_steps: 2",
    "fedrep": "lr: 0.05, local_steps: 2, head_steps: 1",
    "pfedme": "local_steps: 2, lr: 0.02",
}
USED = "clock={mode: buffered, buffer: 3, slot: until_used}"
STALE = "clock={mode: buffered, buffer: 2}"
SINGLE = "clock={mode: asynchronous}"
FAST = ("fedavg", "liu", "scaffold", "fedpm")
TAKES_STALE = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
    for name in available()
    if resolve(name).stale != "refuse"
]


@pytest.fixture
def scenario(few):
    def make(name, *changes):
        params = PARAMS.get(name, "lr: 0.05, local_steps: 2")
        return few(*THREE, f"learning.method={{name: {name}, {params}}}", *changes)

    return make


@pytest.mark.parametrize("name", TAKES_STALE)
def test_a_full_buffer_of_all_devices_is_the_synchronous_clock(scenario, name):
    """K = M = N, slots taken until used: every column that both have, bit for bit."""
    rounds, buffered = (simulate(scenario(name, *changes)) for changes in ([], [USED]))
    assert_the_same(rounds, buffered)
    assert (buffered.rounds.staleness_max == 0).all() and (buffered.rounds.held == 0).all()


def assert_the_same(rounds, buffered):
    """Every column that both have, bit for bit."""
    for table in ("rounds", "scores", "measures"):
        one, two = getattr(rounds, table), getattr(buffered, table)
        for column in one.columns:
            assert np.array_equal(one[column], two[column], equal_nan=one[column].dtype == float), (
                table,
                column,
            )


RANDOM_WORK = ("fjord", "fedmap", "fedpm", "fedlps", "fedmp", "lotteryfl")


@pytest.mark.parametrize("name", TAKES_STALE)
def test_equal_job_times_make_freed_slots_no_difference(scenario, name):
    """K = M = N on equal devices, `until_arrival`: all arrive at one instant, as in a round."""
    if name in RANDOM_WORK:
        pytest.skip("its jobs take different times on equal devices")
    equal = ["devices.0.cpu.frequency=1 GHz", "devices.0.model_budget=1"]
    clock = "clock={mode: buffered, buffer: 3, slot: until_arrival}"
    rounds, buffered = (simulate(scenario(name, *equal, *more)) for more in ([], [clock]))
    assert rounds.device_rounds.groupby("round").finish_s.nunique().max() == 1
    assert_the_same(rounds, buffered)


@pytest.mark.parametrize("name", TAKES_STALE)
def test_one_slot_and_a_buffer_of_one_are_rounds_of_one_participant(scenario, name):
    """M = K = 1: everything that the learning sees is the same, bit for bit, any s with s(0) = 1;
    so are the times. The band is divided among one.
    """
    if resolve(name).__dataclass_fields__.get("participants") is None:
        pytest.skip("takes no participants")
    clock = "clock={mode: buffered, buffer: 1, slot: until_arrival, staleness: {weight: hinge}}"
    one = scenario(name, "learning.method.participants=1", "rounds=4")
    rounds = simulate(one)
    single = simulate(scenario(name, "learning.method.participants=1", "rounds=4", clock))
    assert_the_same(rounds, single)


@pytest.mark.parametrize("name", TAKES_STALE)
def test_tiers_by_speed_learn(scenario, name):
    for clock in ("{mode: tt-fed, window: 20 ms}", "{mode: speed-tiers, speed_tiers: 2}"):
        if "speed" in clock and resolve(name).stale != "damp":
            continue
        since = ["learning.method.delta=since_last"] if name == "spafl" else []
        run = simulate(scenario(name, f"clock={clock}", "rounds=3", *since))
        assert np.isfinite(run.rounds.loss).all() and run.rounds.accuracy.between(0, 1).all()
        assert (run.device_rounds.version_out >= 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKES_STALE)
def test_stale_updates_are_used(scenario, name):
    for clock in (STALE, SINGLE):
        run = simulate(scenario(name, clock, "rounds=6"))
        used = run.device_rounds[run.device_rounds.version_out >= 0]
        assert (used.staleness == used.version_out - 1 - used.version_in).all()
        assert used.staleness.max() > 0 and used.weight.to_numpy() == pytest.approx(
            (1.0 + used.staleness.to_numpy()) ** -0.5
        )
        assert np.isfinite(run.rounds.loss).all() and run.rounds.accuracy.between(0, 1).all()
        assert run.rounds.bits_up.sum() == pytest.approx(
            run.spans.bits[run.spans.phase == "upload"].sum()
        )
        assert run.rounds.energy_j.sum() == pytest.approx(run.spans.energy_j.sum())


def test_updates_without_weight_make_versions_of_the_same_model(scenario, monkeypatch):
    """s(0) = 1 and else 0, K = 1: of equal devices only the first of each instant counts."""
    fresh = lambda section: lambda staleness: float(staleness == 0)  # noqa: E731
    monkeypatch.setattr(clock_choice, "staleness_weight", fresh)
    equal = ["devices.0.cpu.frequency=1 GHz", "devices.0.model_budget=1"]
    run = simulate(scenario("fedavg", *equal, "clock={mode: buffered, buffer: 1}", "rounds=7"))
    loss, stale = run.rounds.loss.tolist(), run.rounds.staleness_max.tolist()
    assert stale == [0, 1, 2, 0, 1, 2, 0] and np.isfinite(loss).all()
    assert loss[0] == loss[1] == loss[2] != loss[3] == loss[4] == loss[5] != loss[6]


ELSEWHERE = ("synchronous", "deadline", "buffered", "asynchronous", "tt-fed", "speed-tiers")
HERE = {"overcommit": "over_commit: 1.5", "window": "window: 20 ms"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in available()]
)
def test_every_method_runs_under_the_other_clocks_or_refuses_in_one_sentence(scenario, name):
    """Synchronous and deadline are in `tests.test_every_method`, the others of them above."""
    (modes,) = ClockSection.model_fields["mode"].metadata
    assert set(modes.options) == {*ELSEWHERE, *HERE}
    for mode, key in HERE.items():
        asked = ["learning.method.participants=2"] if mode == "overcommit" else []
        if resolve(name).__dataclass_fields__.get("participants") is None:
            asked = []
        given = scenario(name, f"clock={{mode: {mode}, {key}}}", "rounds=2", *asked)
        if mode == "window" and resolve(name).stale == "refuse":
            with pytest.raises(EdgesimError, match=f"is {name}, which has no use for") as refusal:
                set_up(given)
            assert "\n" not in str(refusal.value)
            continue
        run = simulate(given)
        assert len(run.rounds) == 2 and run.rounds.accuracy.between(0, 1).all()
        if mode == "overcommit" and asked:
            assert run.rounds.cancelled.tolist() == [1, 1], mode

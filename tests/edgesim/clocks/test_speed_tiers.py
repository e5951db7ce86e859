"""Tiers by speed: TT-Fed's slots and FedAT's rounds by hand, and their models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from edgesim import load, simulate
from edgesim.clocks.rules import Windowed
from edgesim.clocks.speed_tiers import (
    SpeedTiers,
    TimeTriggered,
    slots_needed,
    tiers_by_speed,
)
from edgesim.clocks.tier_models import TierModels, tier_weights
from edgesim.errors import EdgesimError
from edgesim.runs.setup import set_up
from edgesim.seeds import Seeds
from fl.data.datasets import load as load_data
from fl.data.datasets import spread
from fl.executors.deferred_training import Trainer
from fl.method_base.state import State
from fl.models.architectures import build
from fl.task import LearningTask
from tests.edgesim.resumed_runs import assert_resumed
from tests.fl.conftest import Bench, view_of

TIMES = (0.9, 1.1, 2.0, 2.1, 3.5)
UNEVEN = """
name: uneven
rounds: 8
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices:
  - count: 4
    tx_power: 23 dBm
    cpu: {frequency: [2 GHz, 100 MHz, 1 GHz, 20 MHz], flops_per_cycle: 1}
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 20
  model: mlp
  batch_size: 10
  method: {name: fedavg, lr: 0.05}
clock: {mode: speed-tiers, speed_tiers: 2}
"""


@pytest.fixture(scope="module")
def bench():
    digits = spread(load_data("digits"), 4, Seeds(3), kind="labels", labels_per_device=3)
    return Bench(LearningTask(build("mlp", digits.input_shape, 10), digits, 16, Seeds(3)))


@pytest.fixture
def uneven(tmp_path):
    path = tmp_path / "uneven.yaml"
    path.write_text(UNEVEN)
    return lambda *changes: load(path, changes)


def test_tt_fed_by_hand(traced):
    """Slots of 1 s: tiers 1, 2, 2, 3, 4; device of tier m in the rounds k with k mod m = 0."""
    needs = slots_needed(np.array(TIMES), 1.0)
    assert needs == (1, 2, 2, 3, 4)
    run = traced(TIMES, TimeTriggered(slots=5, window_s=1.0, needs=needs), 12)
    assert [set(used) for _, used in run.versions[:4]] == [{0}, {0, 1, 2}, {0, 3}, {0, 1, 2, 4}]
    for k, (time_s, used) in enumerate(run.versions, 1):
        assert time_s == k
        assert used == {d: m - 1 for d, m in enumerate(needs) if k % m == 0}
    window = traced(TIMES, Windowed(slots=5, window_s=1.0), 12)
    assert window.versions == run.versions  # times are constant


def test_a_device_has_its_turn_though_it_is_early_or_late(traced):
    """m = 2 with .9 s waits for the second slot; with 2.5 s it is used in the fourth."""
    rules = TimeTriggered(slots=2, window_s=1.0, needs=(2, 2))
    run = traced((0.9, 2.5), rules, 8)
    assert [used for _, used in run.versions] == [
        {}, {0: 1}, {}, {0: 1, 1: 3}, {}, {0: 1}, {}, {0: 1, 1: 3}
    ]  # fmt: skip


def test_tt_fed_with_a_long_slot_is_synchronous_with_its_period(traced):
    needs = slots_needed(np.array(TIMES), 4.0)
    run = traced(TIMES, TimeTriggered(slots=5, window_s=4.0, needs=needs), 3)
    assert run.versions == [(4.0 * g, dict.fromkeys(range(5), 0)) for g in (1, 2, 3)]


def test_a_time_of_whole_slots_is_not_one_more_by_rounding():
    assert slots_needed(np.array([0.3, 0.1 * 3, 0.31, 0.0]), 0.1) == (3, 3, 4, 1)


def test_tiers_are_of_equal_size_the_fastest_first():
    assert tiers_by_speed(np.array([5.0, 1.0, 3.0, 2.0, 4.0]), 2) == (1, 0, 0, 0, 1)


def test_tiers_go_on_by_themselves(traced):
    """Tier A takes 1 and 1.2 s, tier B 2.5 and 3 s: versions at 1.2, 2.4, 3, 3.6, 4.8, 6, 6."""
    rules = SpeedTiers(slots=4, tier_of=(0, 1, 0, 1))
    run = traced((1.0, 2.5, 1.2, 3.0), rules, 7)
    assert [time_s for time_s, _ in run.versions] == pytest.approx([1.2, 2.4, 3, 3.6, 4.8, 6, 6])
    assert [set(used) for _, used in run.versions] == [
        {0, 2}, {0, 2}, {1, 3}, {0, 2}, {0, 2}, {0, 2}, {1, 3}
    ]  # fmt: skip
    assert [max(used.values()) for _, used in run.versions] == [0, 0, 2, 1, 0, 0, 3]


def test_one_tier_is_synchronous(traced):
    run = traced((1.0, 2.0, 3.0), SpeedTiers(slots=3, tier_of=(0, 0, 0)), 3)
    assert run.versions == [(3.0 * g, {0: 0, 1: 0, 2: 0}) for g in (1, 2, 3)]


def test_weights_of_slow_tiers_are_the_counts_of_fast_ones():
    assert tier_weights([9, 3, 1]) == [1 / 13, 3 / 13, 9 / 13]
    assert tier_weights([0, 0, 0]) == [1 / 3] * 3
    assert tier_weights([4, 4]) == [0.5, 0.5]


@dataclass
class Given:
    """An update of a device whose model is known."""

    job: object
    value: float


class Mean:
    """A method that takes the mean; its personal coordinate, the second, stays."""

    def aggregate(self, state, view, updates):
        w = state.w.clone()
        w[0] = sum(each.value for each in updates) / len(updates)
        return State(state.g + 1, w, state.local, state.memo, state.notes)


def test_the_model_is_that_of_all_tiers_by_hand():
    """Start 1; A makes 3, then 5; B makes 10: T = (2, 1) gives w = 5/3 + 2/3 x 10."""
    job = [type("Job", (), {"device": k}) for k in range(2)]
    method = TierModels(Mean(), (0, 1), torch.tensor([True, False]))
    state = first = State(0, torch.tensor([1.0, 7.0]))

    def version(state, k, value, base):
        used = method.damped(Given(job[k], value), state, base, 1.0)
        return method.aggregate(state, None, [used])

    state = version(state, 0, 3.0, state)
    assert state.w.tolist() == [1.0, 7.0]  # T = (1, 0): all weight on the slow tier's first model
    state = version(state, 0, 5.0, state)
    state = version(state, 1, 10.0, first)
    assert state.w.tolist() == pytest.approx([5 / 3 + 20 / 3, 7.0])
    assert state.notes["speed tiers"] == [2, 1]


DIFFERENCES = {
    "fedopt": {},
    "fedmp": {},
    "feddyn": {"alpha": 0.1},
    "scaffold": {"server_lr": 0.5},
    "pfedme": {"local_steps": 3, "lr": 0.02, "server_mix": 0.5},
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_tiers_round_moves_the_model_with_which_it_began(bench, name):
    """The slow tier's model is that of a server which has made no version since it started."""
    method = bench.method(name, **({"lr": 0.05, "local_steps": 2} | DIFFERENCES[name]))
    tiers = TierModels(method, (0, 0, 1, 1), method.shared_mask)
    first = tiers.start()

    def begun(state, devices):
        return Trainer(method.task).submit(bench.jobs(method, state, devices=devices))

    def version(state, base, updates):
        used = [tiers.damped(each, state, base, 1.0) for each in updates]
        return tiers.aggregate(tiers.retain(state, updates), view_of(bench.task, state.g), used)

    slow, state = begun(first, [2, 3]), first
    state = version(state, state, begun(state, [0, 1]))  # all weight on the slow tier's first
    for _ in range(2):
        slow, base, state = begun(state, [2, 3]), state, version(state, first, slow)
        state = version(state, state, begun(state, [0, 1]))
        first = base
    alone = replace(method.retain(state, slow), w=base.w)
    expected = method.aggregate(alone, view_of(bench.task, state.g), slow)
    state = version(state, base, slow)
    assert not torch.equal(base.w, state.w)
    assert torch.equal(state.memo["speed tier 1"], expected.w)


SELECTIVE = (
    "network={bandwidth: 4 MHz, carrier: {frequency: 3.5 GHz}, noise: -170 dBm/Hz, "
    "channel: {path_loss: {model: constant, loss: 95 dB}, "
    "fading: {kind: rayleigh, speed: 0.000001 m/s, process: clarke, delay_spread: 1 us}}}"
)


def test_in_a_selective_band_times_of_jobs_are_those_in_their_slots(uneven):
    """The gain was the mean over the band, as if every ratio were small: up to 4 % too short."""
    seconds = set_up(uneven(SELECTIVE))._job_seconds(4)
    done = simulate(uneven(SELECTIVE)).device_rounds.drop_duplicates("device")
    assert done.set_index("device").finish_s.sort_index().to_numpy() == pytest.approx(
        seconds, rel=1e-9
    )


@pytest.mark.slow
def test_a_run_makes_its_tiers_by_the_time_of_a_job(uneven):
    setup = set_up(uneven())
    assert setup.clock.tier_of == (0, 1, 0, 1)
    run = simulate(uneven())
    seconds = setup._job_seconds(4)
    first = run.device_rounds.drop_duplicates("device").set_index("device").finish_s
    assert first.sort_index().to_numpy() == pytest.approx(seconds, rel=1e-12)
    used = run.device_rounds[run.device_rounds.version_out >= 0]
    assert (used.weight == 1.0).all() and used.groupby("round").device.nunique().eq(2).all()
    assert run.rounds.staleness_max.max() > 0 and np.isfinite(run.rounds.loss).all()
    one = simulate(uneven("clock.speed_tiers=1", "rounds=3"))
    star = simulate(uneven("clock={mode: synchronous}", "rounds=3"))
    for column in ("loss", "accuracy", "time_s", "energy_j"):
        assert one.rounds[column].tolist() == star.rounds[column].tolist(), column


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clock", "method"),
    [("{mode: speed-tiers, speed_tiers: 2}", "fedavg"), ("{mode: tt-fed, window: 9 ms}", "fedavg"),
     pytest.param("{mode: speed-tiers, speed_tiers: 2}", "scaffold", marks=pytest.mark.slow)],
)  # fmt: skip
def test_killed_at_versions_it_goes_on_with_the_same_bytes(uneven, tmp_path, clock, method):
    given = uneven(f"clock={clock}", f"learning.method={{name: {method}, lr: 0.05}}")
    names = "rounds.csv", "device_rounds.parquet", "spans.parquet", "model.safetensors"
    assert_resumed(given, tmp_path, (1, 5), names)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["clock={mode: tt-fed}"], "needs a window"),
        (["clock={mode: speed-tiers, window: 1 s}"], "reads no window"),
        (["clock={mode: speed-tiers, staleness: {weight: constant}}"], "reads no staleness"),
        (["clock.speed_tiers=5"], "has 4 devices"),
        (["learning.method.participants=2"], "all of a tier take part"),
        (["learning.method={name: fedpm}"], "no mean"),
        (["learning.method={name: spafl}"], "last change .* write delta: since_last"),
        (["allocation.solver=kkt", "budget.latency_threshold=1 s"], "write solver: equal"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(uneven, changes, sentence):
    with pytest.raises(EdgesimError, match=sentence) as refusal:
        set_up(uneven(*changes))
    assert "\n" not in str(refusal.value)

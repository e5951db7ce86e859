"""What a clock does not go with: keys, methods, and runs in which no device could compute."""

import re

import pytest

from edgesim.errors import EdgesimError
from edgesim.runs.run import feasibility
from edgesim.runs.setup import set_up
from edgesim.scenario.clock.clock_schema import OVERLAPPING
from fl.errors import LearningError
from fl.methods import available, resolve


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["network.uplink.share=reclaim"], "write share: fair, or fixed"),
        (
            ["network.uplink.share=slots", "allocation.solver=kkt"],
            "have equal parts with share: slots; write solver: equal, or share: fixed",
        ),
        (["allocation.solver=energy"], "which plans a whole round"),
        (
            ["allocation={solver: kkt, resource_blocks: 20}", "budget.latency_threshold=1 s"],
            "is 20, and with clock.mode buffered devices start at any time in what is left",
        ),
        (["network.downlink={mode: broadcast, tx_power: 40 dBm}"], "write downlink: ideal"),
        (["clock.in_flight=11"], "is 11, but the cell has 10 devices"),
        (["clock.in_flight=4", "learning.method.participants=5"], "keep one of the two"),
        (["clock.buffer=8", "learning.method.participants=5"], "is 8, but 5 devices are in flight"),
    ],
)
def test_what_a_clock_with_slots_does_not_go_with(scenario, changes, sentence):
    with pytest.raises(EdgesimError) as refused:
        set_up(scenario("clock.mode=buffered", *changes))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ["clock={mode: window, window: 1e-40 s}"],
            r"clock.window is .*: all versions \(3\) are over after 3e-40 s, and the fastest "
            r"device computes .* s for its first update; write a longer window, or more rounds",
        ),
        (["clock={mode: tt-fed, window: 1 ns}"], "clock.window is 1 ns: all versions"),
        (
            ["clock.mode=asynchronous", "devices.0.failure_rate=1 GHz"],
            r"devices.0.failure_rate is so high that no update arrives: device 0 computes at least "
            r".* s for one and fails every 1e-09 s",
        ),
    ],
)
def test_what_ends_before_any_device_has_computed_is_refused(scenario, changes, said):
    with pytest.raises(EdgesimError, match=said):
        feasibility(scenario("rounds=3", *changes))


def test_the_bound_of_a_window_is_the_shortest_computation(scenario):
    """Rows of the check have it: compute of the fastest device, in ms."""
    rows = feasibility(scenario("clock={mode: window, window: 1 s}")).rows
    least_s = min(sum(row["stages"].values()) for row in rows) / 1e3
    feasibility(scenario("rounds=2", f"clock={{mode: window, window: {least_s * 0.51} s}}"))
    with pytest.raises(EdgesimError, match="are over after"):
        feasibility(scenario("rounds=2", f"clock={{mode: window, window: {least_s * 0.49} s}}"))
    with pytest.raises(EdgesimError) as refused:  # with times that differ in what is shown
        feasibility(scenario("rounds=2", f"clock={{mode: window, window: {least_s * 0.4999} s}}"))
    end_s, fastest_s = re.search(r"after (\S+) s, .* computes (\S+) s", str(refused.value)).groups()
    assert float(end_s) < float(fastest_s)


@pytest.mark.parametrize("rate", ["mean", "quantile"])
@pytest.mark.parametrize("mode", OVERLAPPING)
def test_where_jobs_overlap_plans_take_the_gains_of_the_instant(scenario, mode, rate):
    """Plans of a part of the band rely on it: they have no other gains."""
    clock = f"{{mode: {mode}{', window: 1 s' if mode in ('window', 'tt-fed') else ''}}}"
    with pytest.raises(EdgesimError, match=rf"is {rate}, and with clock.mode {mode} .*rate: now"):
        set_up(scenario(f"clock={clock}", f"allocation.rate={rate}", "budget.latency_threshold=1s"))


def test_slots_need_a_clock_whose_jobs_overlap(scenario):
    with pytest.raises(EdgesimError, match="each round divides the band; write share: fixed"):
        set_up(scenario("network.uplink.share=slots"))


@pytest.mark.parametrize("name", [name for name in available() if resolve(name).stale == "refuse"])
def test_methods_without_a_use_for_stale_updates_are_refused_in_one_sentence(scenario, name):
    learning = "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 10, "
    changes = f"{learning} method: {{name: {name}}}}}", "clock.mode=asynchronous"
    with pytest.raises((EdgesimError, LearningError)) as refused:
        set_up(scenario(*changes))
    assert f"is {name}, which has no use for updates from older versions" in str(refused.value)
    set_up(scenario(changes[0], "clock.mode=synchronous"))


def test_more_devices_than_there_are_cannot_be_asked(scenario):
    with pytest.raises(EdgesimError, match=r"is 1.3, but 9 of 10 devices are needed"):
        set_up(scenario("clock.mode=overcommit", "learning.method.participants=9"))
    with pytest.raises(EdgesimError, match=r"is 2, but 1 of 1 device is needed"):
        set_up(scenario("clock={mode: overcommit, over_commit: 2}", "devices.0.count=1"))

"""The keys of a clock: what each mode reads, and the rules that follow."""

import pytest

from edgesim import load, simulate
from edgesim.clocks.clock_choice import make_rules
from edgesim.clocks.rules import Buffered, Deadline, OverCommit, Windowed
from edgesim.errors import EdgesimError
from edgesim.runs.run import feasibility
from edgesim.scenario.clock.clock_schema import ClockSection


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("{buffer: 3}", "which reads no buffer; remove it or write mode: buffered"),
        (
            "{mode: asynchronous, server_lr: 1}",
            "which reads no server_lr; remove it or write mode: buffered or",
        ),
        ("{mode: buffered, window: 1 s}", "which reads no window; remove it"),
        ("{mode: window}", "needs a window; write for instance window: 1 s"),
        ("{mode: window, window: 0 s}", "allowed is more than 0"),
        ("{mode: buffered, in_flight: 4, buffer: 5}", "allowed is at most in_flight (4)"),
        ("{mode: asynchronous, mixing: 1.5}", "allowed is more than 0 and at most 1"),
        ("{mode: buffered, staleness: {exponent: 11}}", "allowed is at least 0 and at most 10"),
        ("{mode: buffered, staleness: {weight: hinge, slope: -1}}", "allowed is at least 0"),
        ("{mode: buffered, staleness: {weight: hinge, exponent: 1}}", "reads no exponent"),
        ("{mode: overcommit, over_commit: 0.9}", "allowed is at least 1"),
    ],
)
def test_a_key_without_effect_or_out_of_bounds_is_one_sentence(scenario, section, sentence):
    with pytest.raises(EdgesimError) as refused:
        scenario(f"clock={section}")
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["fedavg", "oort"])  # they ask all devices, and ten, by default
def test_a_run_with_places_in_flight_goes_on_from_its_folder(scenario, tmp_path, name):
    """The resolved scenario has the participants of the method beside clock.in_flight."""
    learning = "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 10, "
    learning += f"method: {{name: {name}}}}}"
    clock = "clock={mode: buffered, in_flight: 4, buffer: 2}"
    simulate(scenario(learning, clock, "rounds=1"), out=tmp_path / "out")
    resolved = load(tmp_path / "out" / "scenario.yaml")
    assert resolved.learning.method.params["participants"] == {"fedavg": "none", "oort": 10}[name]
    simulate(resolved, out=tmp_path / "out", progress=lambda event: pytest.fail("computed again"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["clock.mode=buffered"], "shares are slots: 1 / 10 of the band while a device is at work"),
        (
            ["clock.mode=asynchronous", "clock.in_flight=4", "network.uplink.share=fair"],
            "a round asks 4 of them, and shares are planned for those of round 0; plans count with "
            "1 / 4 of the band each, and those that send divide all of it",
        ),
        (
            ["clock.mode=buffered", "allocation.solver=kkt", "budget.latency_threshold=1 s"],
            "later devices divide what those at work leave of the band",
        ),
    ],
)
def test_a_check_says_what_a_share_is(scenario, changes, said):
    assert feasibility(scenario(*changes)).note == f"all 10 devices can take part; {said}"
    assert feasibility(scenario()).note == "all 10 devices can take part"


def test_a_check_says_that_steps_are_left_out(tiny):
    fedavg = ["learning.method={name: fedavg, lr: 0.1}"]
    whole = feasibility(load(tiny, [*fedavg, "clock.mode=deadline"])).note
    partial = load(tiny, [*fedavg, "clock={mode: deadline, partial: cut}"])
    said = "; plans are of all steps; clock.partial: cut leaves out those that would be late"
    assert feasibility(partial).note == whole + said


def test_rules_by_mode():
    def rules(**keys):
        return make_rules(ClockSection(**keys), 10, 40)

    assert type(rules(mode="synchronous")).__name__ == "Rules"
    assert isinstance(rules(mode="deadline"), Deadline)
    assert rules(mode="overcommit") == OverCommit(needed=10, asked=13)
    fedbuff, fedasync = rules(mode="buffered", in_flight=20), rules(mode="asynchronous")
    assert isinstance(fedbuff, Buffered) and isinstance(fedasync, Buffered)
    assert (fedbuff.slots, fedbuff.buffer, fedbuff.step, fedbuff.from_now) == (20, 2, 1.0, False)
    assert (fedasync.slots, fedasync.buffer, fedasync.step, fedasync.from_now) == (10, 1, 0.6, True)
    assert fedasync.weight(3) == 0.5
    assert isinstance(rules(mode="window", window="2 s"), Windowed)

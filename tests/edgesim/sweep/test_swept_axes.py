"""Sweep blocks of single schemes."""

from pathlib import Path

import pytest

from edgesim.errors import ScenarioError
from edgesim.sweep.sweep_plan import plan_sweep

OWN = """\
base: two.yaml
sweep: {seeds: 0-1, rounds: [2, 3]}
schemes:
  ours: {sweep: {"learning.method.personal_lr:learning.method.global_lr": "0.1:0.1,0.2:0.3"}}
"""


@pytest.fixture
def own(folder):
    (folder / "own.yaml").write_text(OWN)
    return Path("own.yaml")


def named(planned):
    return [(p.label, p.scenario.rounds, p.seed, p.values) for p in planned.points]


def test_a_scheme_is_swept_alone_beside_what_all_vary(own):
    planned = plan_sweep(own)
    first, second, plain = named(planned)[:3]
    rates = ("learning.method.personal_lr", "learning.method.global_lr")
    assert first == ("ours", 2, 0, {"rounds": "2", **dict.fromkeys(rates, "0.1")})
    assert second == ("ours", 2, 0, {"rounds": "2", rates[0]: "0.2", rates[1]: "0.3"})
    assert plain == ("plain", 2, 0, {"rounds": "2"})
    assert len(planned.points) == 2 * 2 * 3  # rounds, seeds, (two values of ours, plain)
    assert planned.axes == {
        "rounds": ["2", "3"],
        rates[0]: ["0.1", "0.2"],
        rates[1]: ["0.1", "0.3"],
    }
    set_to = [point.scenario.learning.method.params for point in planned.points[:2]]
    assert [each["global_lr"] for each in set_to] == [0.1, 0.3]


def test_a_schemes_block_wins_over_the_files(own):
    """Such as a step size of its own for each value of an axis; the others keep that axis."""
    block = '{"rounds:learning.method.personal_lr": "2:0.1,5:0.2"}'
    own.write_text(OWN.split("schemes:")[0] + f"schemes:\n  ours: {{sweep: {block}}}\n")
    found = named(plan_sweep(own, seed_text="0"))
    assert [point[:2] for point in found] == [("ours", 2), ("ours", 5), ("plain", 2), ("plain", 3)]
    assert found[1][3] == {"rounds": "5", "learning.method.personal_lr": "0.2"}
    alone = plan_sweep(own, seed_text="0", only=["ours"])
    assert alone.axes["rounds"] == ["2", "5"]  # no value that no point has
    assert len(plan_sweep(own, ["rounds=4"], "0").points) == 2  # the command line wins over both


def test_the_command_line_wins_over_a_schemes_block(own):
    planned = plan_sweep(own, ["rounds=2", "learning.method.personal_lr=0.7"], "0", ["ours"])
    (point,) = planned.points
    assert point.scenario.learning.method.params["personal_lr"] == 0.7 and point.values == {}


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ("{seeds: 0-3}", "own.yaml:4: seeds are those of all schemes"),
        ('{"seed:rounds": "0:1,1:2"}', "own.yaml:4: seeds are those of all schemes"),
        ("{name: [a, b]}", "name cannot be swept; --out names the folder"),
        ("5", "own.yaml:4: sweep is no mapping"),
    ],
)
def test_mistakes_in_a_schemes_block(own, block, sentence):
    own.write_text(OWN.split("schemes:")[0] + f"schemes:\n  ours: {{sweep: {block}}}\n")
    with pytest.raises(ScenarioError, match=sentence):
        plan_sweep(own)


def test_targets_are_no_axis(own):
    """They are read of the curves of one run, and would train the same again."""
    wanted = r"evaluate\.targets cannot be swept.*write all of them in one list"
    with pytest.raises(ScenarioError, match=wanted):
        plan_sweep(own, ["evaluate.targets=0.3,0.4"], "0")
    block = "evaluate.targets: [[0.3], [0.4]]"
    own.write_text(OWN.split("schemes:")[0] + f"schemes:\n  ours: {{sweep: {{{block}}}}}\n")
    with pytest.raises(ScenarioError, match=wanted):
        plan_sweep(own)
    alone = plan_sweep(own, ["evaluate.targets=[0.3, 0.4]"], "0", ["ours"])
    assert {point.scenario.evaluate.targets for point in alone.points} == {(0.3, 0.4)}
    tied = ["rounds:evaluate.targets=2:[0.3],3:[0.4]"]  # of runs that differ in more
    assert len(plan_sweep(own, tied, "0", ["ours"]).points) == 2

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


def test_a_schemes_block_takes_no_part_of_keys_that_change_together(own):
    """It took the first row of the others, whose further values the scheme lost unseen."""
    head = "base: two.yaml\nsweep: {'devices.0.count:rounds': [[2, 1], [3, 2]]}\nschemes:\n"
    own.write_text(f"{head}  ours: {{sweep: {{rounds: [1, 2]}}}}\n")
    sentence = r"own.yaml:4: ours sweeps rounds, which changes .* together with devices.0.count; "
    with pytest.raises(ScenarioError, match=sentence):
        plan_sweep(own)
    assert len(plan_sweep(own, ["devices.0.count=3"]).points) == 3  # there is nothing to lose
    own.write_text(f"{head}  ours: {{sweep: {{'rounds:devices.0.count': '1:1,2:1'}}}}\n")
    assert len(plan_sweep(own).points) == 2 + 2


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


LINKED = (
    'sweep: {"network.bandwidth:rounds:seed": [[10 MHz, 2, 0], [10 MHz, 3, 1], [20MHz, 2, 0]]}\n'
)


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (["network.bandwidth=10MHz"], [(10e6, 2, 0), (10e6, 3, 1)]),
        (["rounds=2"], [(10e6, 2, 0), (20e6, 2, 0)]),
        (["rounds=2", "network.bandwidth=20 MHz"], [(20e6, 2, 0)]),
        (["network.bandwidth:rounds=10 MHz:3,20 MHz:2"], [(10e6, 3, 1), (20e6, 2, 0)]),
        (["rounds=2,3", "network.bandwidth=10 MHz"], [(10e6, 2, 0), (10e6, 3, 1)]),
        (["network.bandwidth:rounds:seed=5 MHz:4:7"], [(5e6, 4, 7)]),
    ],
)
def test_some_keys_of_an_axis_choose_the_rows_that_have_their_values(folder, texts, rows):
    (folder / "linked.yaml").write_text((folder / "tiny.yaml").read_text() + LINKED)
    points = [
        (point.scenario.network.bandwidth_hz, point.scenario.rounds, point.seed)
        for point in plan_sweep(Path("linked.yaml"), texts).points
    ]
    assert points == rows


@pytest.mark.parametrize(
    ("block", "texts", "seeds"),
    [
        (LINKED, [], "0,1"),
        (LINKED, ["rounds=2"], "0"),
        ("sweep: {seed: [3, 4]}\n", [], "1,4"),
    ],
)
def test_seeds_are_given_in_either_way(folder, block, texts, seeds):
    """--seeds was refused where seed= chooses rows, or replaces the seeds of the file."""
    (folder / "seeded.yaml").write_text((folder / "tiny.yaml").read_text() + block)
    by_key = plan_sweep(Path("seeded.yaml"), [*texts, f"seed={seeds}"])
    by_option = plan_sweep(Path("seeded.yaml"), texts, seeds)
    assert named(by_option) == named(by_key)
    assert (by_option.axes, by_option.changes) == (by_key.axes, by_key.changes)


@pytest.mark.parametrize(
    ("texts", "start"),
    [
        (
            ["rounds=4"],
            "rounds changes in the file together with network.bandwidth, seed; write 2 ",
        ),
        (["~rounds"], "rounds changes in the file together with network.bandwidth, seed; write 2 "),
        (
            ["rounds=3", "network.bandwidth=20 MHz"],
            "network.bandwidth:rounds changes in the file together with seed; write 10 MHz:2 or ",
        ),
        (
            ["rounds=2,3", "network.bandwidth=20 MHz"],  # there is no row of 3 and 20 MHz
            "network.bandwidth:rounds changes in the file together with seed; write 10 MHz:2 or ",
        ),
    ],
)
def test_values_that_an_axis_does_not_have_are_refused(folder, texts, start):
    """The other keys would silently be those of the file without a sweep."""
    (folder / "linked.yaml").write_text((folder / "tiny.yaml").read_text() + LINKED)
    with pytest.raises(ScenarioError) as refused:
        plan_sweep(Path("linked.yaml"), texts)
    assert str(refused.value).startswith(f"command line: {start}")
    assert str(refused.value).endswith("values of all: network.bandwidth:rounds:seed=...")


@pytest.mark.parametrize("number", ["0.2", "0.20", "2e-1"])
def test_a_chosen_row_of_a_schemes_axis_keeps_its_other_keys(own, number):
    planned = plan_sweep(own, ["rounds=2", f"learning.method.personal_lr={number}"], "0", ["ours"])
    (point,) = planned.points
    params = point.scenario.learning.method.params
    assert (params["personal_lr"], params["global_lr"]) == (0.2, 0.3)
    assert planned.changes["schemes.ours.learning.method.global_lr"] == "0.3"


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        ("learning.method.personal_lr=0.7", [(0.7, 0.01)]),
        ("learning.method.personal_lr=0.2", [(0.2, 0.3)]),  # a row, with its other key
        ("rounds=4", [(0.1, 0.1), (0.2, 0.3)]),
    ],
)
def test_a_key_that_is_given_within_a_scheme_wins_over_the_schemes_block(own, given, rates):
    """The scheme's own sweep set it again, unseen."""
    planned = plan_sweep(own, [f"schemes.ours.{given}", "rounds=2"], "0", ["ours"])
    params = [point.scenario.learning.method.params for point in planned.points]
    found = [(each["personal_lr"], each.get("global_lr", 0.01)) for each in params]
    assert found == rates
    if len(rates) == 1:
        kept = {f"schemes.ours.learning.method.{key}" for key in params[0] if key != "warmup_steps"}
        assert kept <= set(planned.changes)


@pytest.mark.parametrize("given", [[], ["schemes.ours.sweep.learning.method.personal_lr=[4, 5]"]])
def test_a_swept_key_may_be_dotted_behind_sweep(own, given):
    """It was taken for the section learning: "learning.dataset is missing"."""
    block = "{sweep.learning.method.personal_lr: [2, 3]}" if not given else "{}"
    own.write_text(OWN.split("schemes:")[0] + f"schemes:\n  ours: {block}\n")
    planned = plan_sweep(own, ["rounds=2", *given], "0", ["ours"])
    assert planned.axes == {"learning.method.personal_lr": ["4", "5"] if given else ["2", "3"]}


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        ("learning.method={name: liu, personal_lr: 0.5}", {0.5}),
        ("learning.method={name: liu, personal_lr: 5},{name: fedalt, personal_lr: 6}", {5, 6}),
        ("learning.method=fedalt", {0.1, 0.2}),
    ],
)
def test_a_section_that_is_given_wins_over_axes_of_what_it_sets(own, given, rates):
    """The scheme's axis set the step size again, unseen; that of the file made equal points."""
    axis, head = "{sweep: {learning.method.personal_lr: [0.1, 0.2]}}", OWN.split("sweep:")[0]

    def swept(text, given):
        own.write_text(f"{head}{text}\n")
        points = plan_sweep(own, [given], only=["ours"]).points
        return {point.scenario.learning.method.params["personal_lr"] for point in points}

    assert swept(axis[1:-1], given) == swept(f"schemes: {{ours: {axis}}}", given) == rates
    linked = axis.replace("personal_lr: ", "personal_lr:rounds: ").replace("0.1, 0.2", "[3, 4]")
    if given.startswith("learning.method={"):
        assert swept(f"schemes: {{ours: {linked}}}", given) == rates
        with pytest.raises(ScenarioError, match=r"personal_lr changes .* together with rounds"):
            swept(linked[1:-1], given)
    if len(rates) == 1:
        assert swept(f"schemes: {{ours: {axis}}}", f"schemes.ours.{given}") == rates


def test_a_section_that_is_removed_goes_with_its_axes(own):
    own.write_text("base: two.yaml\nsweep: {budget.latency_threshold: [20 ms, 25 ms]}\n")
    (point,) = plan_sweep(own, ["~budget", "allocation.solver=equal"], only=["plain"]).points
    assert point.scenario.budget.latency_threshold_s is None

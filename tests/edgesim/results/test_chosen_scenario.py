"""The scenario that --select writes: what was chosen is what it runs."""

from pathlib import Path

import pytest

from edgesim.errors import ResultsError
from edgesim.results.best_validation import Candidate, Choice, chosen_scenario
from edgesim.scenario.loader import expand
from edgesim.sweep.sweep_plan import plan_sweep

LR = "learning.method.lr"
TUNING = """
base: tiny.yaml
schemes:
  avg: {sweep: {learning.method.lr: [0.1, 0.2]}}
  prox:
    learning.method.lr: 0.3
    learning: {method: {name: fedprox, mu: 0.01}}
    sweep: {learning.method.lr: [0.1, 0.2]}
"""


@pytest.fixture
def methods(tiny_scenario, tmp_path):
    """Method and its parameters, by label, of the file that is written into a sweep's folder."""

    def written(chosen, more="", tuning=None, sweep="runs/s", of_schemes=None):
        (tmp_path / "tiny.yaml").write_text(tiny_scenario.read_text() + more)
        (tmp_path / "tuning.yaml").write_text(tuning or "base: tiny.yaml\n")
        (tmp_path / sweep).mkdir(parents=True, exist_ok=True)
        choices = [Choice(label, (Candidate(each, 0.5, 1),)) for label, each in chosen.items()]
        source = tmp_path / ("tuning.yaml" if tuning else "tiny.yaml")
        path = tmp_path / sweep / "chosen.yaml"
        if of_schemes is None:
            of_schemes = "schemes" in more + (tuning or "")
        path.write_text(chosen_scenario(choices, source, tmp_path / sweep, of_schemes))
        found = {label: s.learning.method for label, s in expand(path)}
        return {label: (method.name, method.params) for label, method in found.items()}

    return written


def test_a_scheme_that_only_the_tuning_file_has_keeps_its_method(methods):
    chosen = {"avg": {LR: "0.2"}, "prox": {LR: "0.2"}}
    assert methods(chosen, "schemes: {avg: {}}\n", TUNING) == {
        "avg": ("fedavg", {"lr": 0.2}),
        "prox": ("fedprox", {"lr": 0.2, "mu": 0.01}),
    }


def test_a_scheme_that_only_the_command_line_has_is_refused(methods):
    with pytest.raises(ResultsError, match=r'tuning.yaml has no scheme "mine"; write it there'):
        methods({"avg": {LR: "0.2"}, "mine": {LR: "0.2"}}, "schemes: {avg: {}}\n", TUNING)
    resolved = "base: tiny.yaml\nscheme: mine\n# without schemes\n"  # as in the folder of a run
    assert methods({"mine": {LR: "0.2"}}, tuning=resolved) == {"mine": ("fedavg", {"lr": 0.2})}


def test_schemes_that_the_command_line_removed_are_refused(methods):
    """The file that was written ran the schemes, and not what was chosen."""
    source, chosen = "base: tiny.yaml\nschemes: {avg: {}}\n", {"fedavg": {LR: "0.2"}}
    with pytest.raises(ResultsError, match=r"tuning.yaml has schemes, which no file over it can"):
        methods(chosen, tuning=source, of_schemes=False)


def test_several_methods_of_a_file_without_schemes_become_schemes(methods):
    name = "learning.method.name"
    chosen = {each: {LR: "0.2", name: each} for each in ("fedavg", "fedprox")}
    assert methods(chosen) == {each: (each, {"lr": 0.2}) for each in chosen}
    alone = {"liu": {"learning.method.personal_lr": "0.2", name: "liu"}}
    assert methods(alone) == {None: ("liu", {"personal_lr": 0.2})}  # without FedAvg's lr


def test_what_the_command_line_changed_for_all_is_kept_but_for_what_it_held_out(methods, tmp_path):
    """The file that was written had the rounds of the base."""
    source = tmp_path / "tiny.yaml"
    methods({"a": {LR: "0.2"}}, "schemes: {a: {rounds: 3}, b: {}}\n")
    choices = [Choice(label, (Candidate({LR: "0.2"}, 0.5, 1),)) for label in "ab"]
    held_out = {key + "learning.validation": "0.2" for key in ("", "schemes.a.", "schemes.b.")}
    rounds = {"schemes.a.rounds": "7", "schemes.b.rounds": "8"}
    changes = rounds | {LR: "9", "network.bandwidth": "6 MHz"} | held_out
    path = tmp_path / "runs/s/chosen.yaml"
    path.write_text(chosen_scenario(choices, source, path.parent, True, changes))
    found = dict(expand(path))
    assert {label: each.rounds for label, each in found.items()} == {"a": 7, "b": 8}
    for each in found.values():
        assert (each.network.bandwidth_hz, each.learning.method.params["lr"]) == (6e6, 0.2)
        assert each.learning.validation is None


@pytest.mark.parametrize("text", ["seed=3", "seed:rounds=3:7"])
def test_seeds_of_the_tuning_are_not_in_the_file(methods, tmp_path, text):
    """The second one was; a choice is to be reported from other seeds."""
    methods({"fedavg": {}})
    plan = plan_sweep(tmp_path / "tiny.yaml", [text])
    choice = Choice("fedavg", (Candidate({LR: "0.2"}, 0.5, 1),))
    written = chosen_scenario([choice], plan.source, tmp_path, False, plan.changes)
    assert "seed" not in written and ("rounds: 7" in written) == ("rounds" in text)


@pytest.mark.parametrize(
    "texts",
    [
        ("rounds=7", "schemes.b.rounds=8"),  # the first wins also where it stands first
        ("learning.method={name: fedprox, mu: 0.1}",),  # with the swept step beside it
        ("learning.method={name: fedavg, local_steps: 3}",),
    ],
)
def test_what_is_written_is_what_the_points_ran(methods, tmp_path, texts):
    methods({"a": {LR: "0.2"}}, "schemes: {a: {rounds: 3}, b: {}}\n")
    plan = plan_sweep(tmp_path / "tiny.yaml", (*texts, f"{LR}=0.1,0.2"))
    ran = {point.label: point for point in plan.points}
    choices = [Choice(label, (Candidate(each.values, 0.5, 1),)) for label, each in ran.items()]
    path = tmp_path / "runs/s/chosen.yaml"
    path.write_text(chosen_scenario(choices, plan.source, path.parent, True, plan.changes))
    for label, found in expand(path):
        wanted = ran[label].scenario
        assert (found.rounds, found.learning.method) == (wanted.rounds, wanted.learning.method)


def test_what_the_files_own_sweep_gives_one_value_is_written(methods, tmp_path):
    """The file that was written had 1 MHz where the points ran with 3."""
    swept = "sweep: {network.bandwidth: 3 MHz, rounds: 7, learning.method.lr: [0.1, 0.2]}\n"
    methods({"a": {}}, f"schemes: {{a: {{}}, b: {{sweep: {{rounds: 8}}}}}}\n{swept}")
    plan = plan_sweep(tmp_path / "tiny.yaml")
    ran = {point.label: point.values for point in plan.points}
    choices = [Choice(label, (Candidate(each, 0.5, 1),)) for label, each in ran.items()]
    text = chosen_scenario(choices, plan.source, tmp_path, True, plan.changes)
    (tmp_path / "chosen.yaml").write_text(text)
    found = dict(expand(tmp_path / "chosen.yaml"))
    assert {label: each.rounds for label, each in found.items()} == {"a": 7, "b": 8}
    for point in plan.points:
        assert point.scenario.rounds == found[point.label].rounds
        assert found[point.label].network.bandwidth_hz == 3e6
    (tmp_path / "over.yaml").write_text("base: tiny.yaml\nsweep: {evaluate.every: 2}\n")
    # what a tuning changes goes with it, what its base sweeps does not
    assert plan_sweep(tmp_path / "over.yaml").changes == plan.changes


@pytest.mark.parametrize("key", ["schemes", "schemes.a"])
def test_a_scheme_that_the_command_line_replaced_is_refused(methods, tmp_path, key):
    """The file that was written had the scheme of the base."""
    methods({"a": {LR: "0.2"}}, "schemes: {a: {rounds: 3}}\n")
    about = [Choice("a", (Candidate({LR: "0.2"}, 0.5, 1),))], tmp_path / "tiny.yaml", tmp_path
    with pytest.raises(ResultsError, match=f"the sweep replaced {key}, which no file over"):
        chosen_scenario(*about, True, {key: "{rounds: 9}"})
    with pytest.raises(ResultsError, match=f"the sweep replaced {key}, which no file over"):
        methods({"a": {key: "{rounds: 9}"}}, "schemes: {a: {rounds: 3}}\n")  # one of several
    chosen_scenario(*about, True, {"schemes.b": "{rounds: 9}"})  # of another one


def test_lists_and_mappings_are_written_as_such(methods, tmp_path):
    chosen = {"fedavg": {"devices.0.cpu.frequency": "3 GHz", "evaluate.targets": "[0.3, 0.4]"}}
    methods(chosen)
    ((_, scenario),) = expand(tmp_path / "runs/s/chosen.yaml")
    assert scenario.evaluate.targets == (0.3, 0.4)
    fedavg, fedprox = "{name: fedavg, lr: 0.2}", "{name: fedprox, mu: 0.1}"
    chosen = {"fedavg": {"learning.method": fedavg}, "fedprox": {"learning.method": fedprox}}
    assert methods(chosen) == {
        "fedavg": ("fedavg", {"lr": 0.2}),
        "fedprox": ("fedprox", {"mu": 0.1}),
    }


def test_a_mapping_that_the_base_would_add_to_is_refused(methods):
    chosen = {"fedavg": {"learning.method": "{name: fedavg, local_steps: 3}"}}
    sentence = r"fedavg: no file over a base can replace learning.method by .*copy the values"
    with pytest.raises(ResultsError, match=sentence):
        methods(chosen)  # the base's lr would stay


def test_the_base_is_found_from_a_folder_that_is_a_link(methods, tmp_path):
    (tmp_path / "disk" / "large").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(Path("disk") / "large")
    assert methods({"fedavg": {LR: "0.2"}}) == {None: ("fedavg", {"lr": 0.2})}


def test_a_value_that_was_swept_within_a_scheme_is_chosen_in_it(methods):
    """`edgesim sweep FILE schemes.b.learning.method.lr=0.001,0.3` names the scheme in its key."""
    schemes = "schemes: {a: {}, b: {learning.method.lr: 0.2}}"
    swept = {f"schemes.b.{LR}": "0.3"}
    found = methods({"a": swept, "b": swept}, schemes)
    assert found["b"][1]["lr"] == 0.3 and found["a"][1].get("lr") != 0.3


def test_a_key_of_a_scheme_is_not_one_of_another_whose_label_begins_it(methods, tmp_path):
    """The keys of v1.5 were read as keys 5.rounds of v1."""
    methods({"v1": {}}, "schemes: {v1: {}, v1.5: {}}\n")
    linked = f"schemes.v1.5.evaluate.every:{LR}=2:0.1,3:0.2"
    plan = plan_sweep(tmp_path / "tiny.yaml", ("schemes.v1.5.rounds=7", linked))
    choices = [Choice(p.label, (Candidate(p.values, 0.5, 1),)) for p in plan.points[2:]]
    text = chosen_scenario(choices, plan.source, tmp_path, True, plan.changes)
    (tmp_path / "chosen.yaml").write_text(text)
    found = dict(expand(tmp_path / "chosen.yaml"))
    assert {label: (each.rounds, each.evaluate.every) for label, each in found.items()} == {
        point.label: (point.scenario.rounds, point.scenario.evaluate.every)
        for point in plan.points[2:]
    }

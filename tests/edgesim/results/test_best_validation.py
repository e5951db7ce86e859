"""The choice of the best point of a sweep, by hand."""

import json

import pytest

from edgesim.errors import ResultsError
from edgesim.results.best_validation import choose, overlay
from edgesim.scenario.documents.yaml_text import read_text

LR = "learning.method.lr"


def made(sweep, points):
    """A sweep folder with points (label, values, accuracies of the evaluated rounds)."""
    rows = []
    for i, (label, values, accuracies) in enumerate(points):
        folder = sweep / "points" / str(i)
        folder.mkdir(parents=True)
        lines = [f"{g},validation_accuracy,{value}" for g, value in enumerate(accuracies)]
        text = "\n".join(["round,name,value", "0,density,0.99", *lines]) + "\n"
        (folder / "measures.csv").write_text(text)
        rows.append({"folder": f"points/{i}", "label": label, "values": values, "status": "done"})
    (sweep / "sweep.json").write_text(json.dumps({"points": rows}))
    return sweep


def test_the_best_mean_over_seeds_of_the_last_quarter(tmp_path):
    rise = [0.1] * 6
    sweep = made(
        tmp_path,
        [
            ("a", {LR: "0.1"}, [*rise, 0.5, 0.7]),  # 0.6 over the last 2 of 8 evaluations
            ("a", {LR: "0.2"}, [*rise, 0.9, 0.9]),  # 0.9
            ("a", {LR: "0.4"}, [*rise, 0.6, 0.6]),
            ("a", {LR: "0.1"}, [*rise, 0.8, 0.8]),  # another seed: 0.8, mean 0.7
            ("a", {LR: "0.2"}, [*rise, 0.4, 0.4]),  # mean 0.65
            ("a", {LR: "0.4"}, [*rise, 0.7, 0.7]),  # mean 0.65
            ("b", {LR: "0.1"}, [0.3]),
            ("b", {LR: "0.2"}, [0.9]),
            ("b", {LR: "0.4"}, [0.9]),  # of equally good ones the first
        ],
    )
    a, b = choose(sweep)
    assert [each.score for each in a.candidates] == pytest.approx([0.7, 0.65, 0.65])
    assert (a.best.values, a.best.seeds, a.edges) == ({LR: "0.1"}, 2, [LR])
    assert (b.best.values, b.edges) == ({LR: "0.2"}, [])


def test_only_numbers_have_an_edge(tmp_path):
    values = [{"learning.method.weighting": word, "rounds": "5"} for word in ("uniform", "samples")]
    (choice,) = choose(made(tmp_path, [("a", each, [0.5]) for each in values]))
    assert choice.edges == []


@pytest.mark.parametrize(
    ("key", "texts", "edge"),
    [
        ("learning.method.adaptive", ["true", "false"], False),  # was "at the edge; widen them"
        ("clock.window", ["500 ms", "2 s", "30s"], True),  # had no warning
        ("clock.window", ["2 s", "500 ms", "30s"], False),
        ("budget.latency_threshold", ["none", "25 ms", "30 ms"], False),
        ("learning.method.lr", ["1e-3", "0.01"], True),
    ],
)
def test_numbers_have_an_edge_with_units_too_and_switches_have_none(tmp_path, key, texts, edge):
    (choice,) = choose(made(tmp_path, [("a", {key: text}, [0.5]) for text in texts]))
    assert (choice.best.values[key], choice.edges) == (texts[0], [key] * edge)


def test_the_overlay_holds_the_chosen_values(tmp_path):
    points = [("a b", {LR: "0.1", "rounds": "5"}, [0.5]), ("c", {}, [0.5])]
    choices = choose(made(tmp_path, points))
    text = overlay(choices, "../demo.yaml", of_schemes=True)
    schemes = {"a b": {LR: 0.1, "rounds": 5}, "c": {}}
    assert read_text(text, "it").tree == {"base": "../demo.yaml", "schemes": schemes}
    text = overlay(choices[:1], "demo.yaml", of_schemes=False)
    assert read_text(text, "it").tree == {"base": "demo.yaml", LR: 0.1, "rounds": 5}


def test_what_cannot_be_chosen_from(tmp_path):
    sweep = made(tmp_path, [("a", {LR: "0.1"}, [])])
    with pytest.raises(ResultsError, match=r"has no validation_accuracy; hold samples out"):
        choose(sweep)
    listed = json.loads((sweep / "sweep.json").read_text())
    listed["points"][0]["status"] = "infeasible"
    (sweep / "sweep.json").write_text(json.dumps(listed))
    with pytest.raises(ResultsError, match=r"is infeasible; .* leave its values out\.$"):
        choose(sweep)  # running it again would end in the same way
    listed["points"][0]["status"] = "failed"
    (sweep / "sweep.json").write_text(json.dumps(listed))
    with pytest.raises(ResultsError, match=r"a: learning.method.lr=0.1 is failed; --select needs"):
        choose(sweep)

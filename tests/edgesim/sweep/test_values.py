"""Values and seeds of a sweep, from texts and from sweep blocks."""

import pytest

from edgesim.errors import ScenarioError
from edgesim.scenario.documents.yaml_text import read_text
from edgesim.sweep.values import axis_from_block, axis_from_text, block_seeds, parse_seeds, split


def texts(axis):
    return [tuple(value.text for value in row) for row in axis.rows]


def trees(axis):
    return [tuple(value.override.value.tree for value in row) for row in axis.rows]


def test_commas_in_brackets_and_quotes_belong_to_a_value():
    assert split("[1, 2],{a: 1, b: [2, 3]},'x,y',range(1,2,1)", ",", "key") == [
        "[1, 2]", "{a: 1, b: [2, 3]}", "'x,y'", "range(1,2,1)",
    ]  # fmt: skip
    axis = axis_from_text("devices.0.cpu.frequency=[1 GHz, 2 GHz],3 GHz,range(4 GHz,5 GHz,1 GHz)")
    assert trees(axis) == [(["1 GHz", "2 GHz"],), ("3 GHz",), ("4 GHz",), ("5 GHz",)]
    assert trees(
        axis_from_text("learning.method={name: fedavg, lr: 0.1},{name: fedavg, lr: 0.2}")
    ) == [
        ({"name": "fedavg", "lr": 0.1},),
        ({"name": "fedavg", "lr": 0.2},),
    ]


def test_zipped_keys_change_together():
    axis = axis_from_text("network.bandwidth:rounds=100MHz:10,200MHz:20")
    assert axis.keys == ("network.bandwidth", "rounds")
    assert texts(axis) == [("100MHz", "10"), ("200MHz", "20")] and trees(axis)[1] == ("200MHz", 20)
    assert texts(axis_from_text("a:b=range(1,3,1):log(1,100,3)")) == [
        ("1", "1"),
        ("2", "10"),
        ("3", "100"),
    ]
    assert trees(axis_from_text("a:b={x: 1}:'p:q'")) == [({"x": 1}, "p:q")]


def test_a_block_lists_values_and_names_its_line():
    block = read_text(
        "rounds: [1, 2]\nnetwork.bandwidth:rounds: [[100 MHz, 10], [200 MHz, 20]]\n"
        "lr: log(1,100,3)\nk: ['range(1,2,1)', 5]",
        "file.yaml",
    )
    axes = {name: axis_from_block(name, block.subtree((name,))) for name in block.tree}
    assert trees(axes["rounds"]) == [(1,), (2,)]
    assert trees(axes["network.bandwidth:rounds"]) == [("100 MHz", 10), ("200 MHz", 20)]
    assert (texts(axes["lr"]), texts(axes["k"])) == (
        [("1",), ("10",), ("100",)],
        [("1",), ("2",), ("5",)],
    )
    assert axes["lr"].rows[1][0].override.value.place_of(()) == "file.yaml:3"
    with pytest.raises(ScenarioError, match=r"^file\.yaml:1: .*whose last step ends at 3"):
        axis_from_block("k", read_text("range(1,4,2)", "file.yaml"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rounds", "is not an override; write key=value"),
        ("rounds=", "has no value"),
        ("rounds=1,,2", "has an empty value"),
        ("rounds=1,1", "has the value 1 twice"),
        ("rounds=[1,2", "has a bracket or a quote that does not close"),
        ("a:b=1,2", "write 2 values for its 2 keys, value1:value2"),
        ("a:a=1:2", "names a key twice"),
        ("a:b=range(1,3,1):range(1,2,1)", "has ranges of 3 and 2 values; make them equally long"),
        ("t=range(15ms,32ms,5ms)", "whose last step ends at 30ms"),
        ("t=range(15ms,30ms,-5ms)", "does not lead from 15ms to 30ms"),
        ("t=range(15ms,30ms,0ms)", "does not lead"),
        ("t=range(1,2)", "takes three numbers, such as range(15ms,30ms,5ms)"),
        ("t=range(1,x,1)", 'where "x" is no number'),
        ("t=range(1ms,2MHz,1ms)", "where 2MHz is not in ms; write all with the same unit"),
        ("t=range(1,1e9,1)", "allowed are 10000"),
        ("t=log(1,10,1)", "from 2 to 10000"),
        ("t=log(0,1GHz,4)", "t has log(0,1GHz,4); log has equal ratios, so that no end is 0"),
        ("t=log(0MHz,1GHz,4)", "log has equal ratios, so that no end is 0; write one above 0"),
        ("t=log(-1,10,3)", "needs two numbers above 0 and no decibel"),
        ("t=log(1dBm,10dBm,3)", "needs two numbers above 0 and no decibel"),
    ],
)
def test_mistakes_are_one_sentence(text, sentence):
    with pytest.raises(ScenarioError) as problem:
        axis_from_text(text)
    assert sentence in str(problem.value) and str(problem.value).startswith("command line: ")
    assert "\n" not in str(problem.value)


def test_seeds():
    assert parse_seeds("0-4") == (0, 1, 2, 3, 4) and parse_seeds("0, 7-9 ,3") == (0, 7, 8, 9, 3)
    assert block_seeds(read_text("[1, 2]", "f")) == (1, 2) and block_seeds(read_text("5", "f")) == (
        5,
    )
    for wrong in ("", "a", "-1", "4-0", "1,1", "0-10000000", "1.5"):
        with pytest.raises(ScenarioError, match=r"^command line: seeds "):
            parse_seeds(wrong)
    largest = 2**63 - 1  # as with --seed; it was "write such as 0-4 or 0,3,7"
    assert parse_seeds(f"{largest - 1}-{largest}") == (largest - 1, largest)
    with pytest.raises(ScenarioError, match=rf"seeds has {2**63}; seeds go from 0 to {largest}"):
        parse_seeds(f"0,{2**63}")

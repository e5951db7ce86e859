"""What YAML words mean."""

import re

import pytest
import yaml

from edgesim.errors import ScenarioError
from edgesim.scenario.documents import yaml_text
from edgesim.scenario.documents.scalars import scalar, write_text
from edgesim.scenario.documents.yaml_text import read_file, read_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1.5", -1.5),
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("yes", "yes"),
        ("true", True),
        ("~", None),
        ("1_0", "1_0"),
        ("+" + "0" * 5000 + "7", 7),
        ("-" + "0" * 5000, 0),
    ],
)
def test_yaml_words(text, value):
    assert scalar(text) == value and type(scalar(text)) is type(value)


def test_quoted_words_stay_words():
    assert read_text("a: '1'\nb: \"true\"\nc: 1\n", "x").tree == {"a": "1", "b": "true", "c": 1}


def test_a_written_text_is_read_back_as_it_was():
    words = [
        "on",
        "1e3",
        "1_0",
        "~",
        "",
        "true",
        "Null",
        "-",
        "?",
        "a: b",
        "# x",
        "x\ny",
        "ü",
        ".inf",
    ]
    numbers = [1e-28, 1e16, -0.0, 5.0, float("inf"), 0.1, 10**30, -3]
    content = {"on": words, "1": numbers, "none": [None, True, [], {}, {"a": [[1], {"b": "off"}]}]}
    assert repr(read_text(write_text(content), "x").tree) == repr(content)


def test_numbers_and_words_are_written_plainly():
    text = "on: 1e-28\nname: off\n'1': .inf\nwords: []\n"
    assert write_text(read_text(text, "x").tree) == text


def test_aliases_are_written_out():
    twice = [1]
    assert write_text({"a": twice, "b": twice}) == "a:\n- 1\nb:\n- 1\n"


@pytest.mark.parametrize("parser", [yaml.CSafeLoader, yaml.SafeLoader])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1\nb: 2\n", 2),
        ("# ééé\nb: c\x01d\n", 2),
        ("a: 1\nb: \\ud800\ud800\n", 2),
        ("a: @\n", 1),
    ],
)
def test_with_and_without_libyaml_the_same_line_is_named(monkeypatch, parser, text, line):
    monkeypatch.setattr(yaml_text, "_PARSER", parser)
    with pytest.raises(ScenarioError, match=rf"^x:{line}: not valid YAML"):
        read_text(text, "x")


@pytest.mark.parametrize("parser", [yaml.CSafeLoader, yaml.SafeLoader])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: {c: 2\nd: 3\n", 'x:3: .* (the { of line 2 is not closed before "d: 3"); close'),
        ("a: {b: K [1], c: d}\n", 'x:1: .* (the { is not closed before "[1], c: d}"); close it'),
        ("a: [1, 2\n", "x:2: .* (the [ of line 1 is not closed before the end); close it"),
        ("a: 1\nb:5\nc: 3\n", "x:3: .*; a key has a colon and a blank, also in the line before"),
        ("a: b: c\n", "x:1: .*; a key has a colon and a blank"),
        ("a: 1\n b: 2\n", "x:2: .*, and begins in the column of the keys beside it; quote"),
    ],
)
def test_what_is_no_yaml_is_named_where_it_began_and_with_the_cure(
    monkeypatch, parser, text, sentence
):
    """The parser itself stops at the next key, and says that it did not find ',' or '}'."""
    monkeypatch.setattr(yaml_text, "_PARSER", parser)
    with pytest.raises(ScenarioError, match=re.escape(sentence).replace(r"\.\*", ".*")):
        read_text(text, "x")


def test_the_scenario_of_a_runs_folder_may_be_larger_as_values_of_traces_stand_in_it(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(f"name: {'x' * yaml_text.MAX_BYTES}\n")
    with pytest.raises(ScenarioError, match="more than the 256 KiB allowed"):
        read_file(path)
    (tmp_path / "checkpoint").mkdir()
    assert len(read_file(path).tree["name"]) == yaml_text.MAX_BYTES
    with pytest.raises(ScenarioError, match="more than the 256 KiB allowed"):
        read_file(path.rename(tmp_path / "other.yaml"))
    path.write_text(f"name: {'x' * yaml_text.MAX_RESOLVED_BYTES}\n")
    with pytest.raises(ScenarioError, match="more than the 4 MiB allowed"):
        read_file(path)

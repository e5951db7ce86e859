"""Files that are no YAML, or hold YAML that a scenario may not, are one sentence with the line."""

import pytest

from edgesim import load
from edgesim.errors import ScenarioError
from edgesim.scenario.loader import expand

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
EDITS = {  # name -> old, new, part of the sentence
    "syntax": ("20 MHz", "[20 MHz", "not valid YAML"),
    "two colons": ("rounds: 3", "rounds: a: 3", "bad.yaml:2: not valid YAML"),
    "tab": ("  noise", "\tnoise", "bad.yaml:5: not valid YAML"),
    "control character": ("name: cell", "name: c\x01ell", "bad.yaml:1: not valid YAML"),
    "half a character": ("name: cell", 'name: "\\ud800"', "bad.yaml:1: an escape that is no"),
    "beyond Unicode": ("name: cell", 'name: "\\U00110000"', "an escape that is no character"),
    "beyond all": ("name: cell", 'name: "\\UFFFFFFFF"', "an escape that is no character"),
    "tag": ("rounds: 3", "rounds: !!python/object/apply:os.getcwd []", "bad.yaml:2: the tag"),
    "duplicate key": (
        "rounds: 3",
        "rounds: 3\nrounds: 4",
        'bad.yaml:3: the key "rounds" stands twice',
    ),
    "decimal comma": (
        "rounds: 3",
        "rounds: 3\nserver: {downtime: 1,5 s}",
        "bad.yaml:3: downtime: 1,5 s has a comma, which ends an entry between braces; "
        "write downtime: 1.5 s",
    ),
    "decimal comma of a number": ("rounds: 3", "rounds: 3\nx: {lr: 0,1}", "write lr: 0.1"),
    "thousands": ("rounds: 3", "rounds: 3\nx: {b: 1,500,000 Hz}", "write a number without it"),
    "no comma": ("rounds: 3", "rounds: 3\n10:", "bad.yaml:3: the key 10 is unknown"),
    "nothing": ("rounds: 3", "rounds: 3\nx: {0: 1, 1: null}", "bad.yaml:3: the key x is unknown"),
    "mapping as key": ("rounds: 3", "? {a: b}\n: 3", "bad.yaml:2: a key is a list or a mapping"),
}
FILES = {  # name -> content, part of the sentence
    "binary": (bytes(range(256)) * 10, "not UTF-8"),
    "empty": ("", "the file is empty; write a scenario: edgesim init DIR makes one to start from"),
    "tab": ("name: cell\nx:\n\ty: 1\n", "bad.yaml:3: a tab before the text; indent with blanks"),
    "tab at once": ("\tname: cell\n", "bad.yaml:1: a tab before the text; indent with blanks"),
    "only comments": ("# nothing\n", "the file is empty"),
    "nothing": ("---\n", "the scenario is empty; write a mapping"),
    "top-level list": ("- name: cell\n", "the scenario is a list; write a mapping"),
    "top-level word": ("cell\n", 'the scenario is "cell"; write a mapping'),
    "cyclic alias": ("a: &a [*a]\n", 'bad.yaml:1: anchors and aliases ("a") are not allowed'),
    "alias bomb": (BOMB, "anchors and aliases"),
    "deep nesting": ("a: " + "[" * 50_000, "nested deeper than 20 levels"),
    "deep mapping": ("".join(f"{' ' * i}a:\n" for i in range(300)), "nested deeper than 20 levels"),
    "10 MB": ("#" * 10_000_000, "it has 9.537 MiB, more than the 256 KiB allowed"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_that_yaml_does_not_allow(sentence_of_edit, name):
    old, new, expected = EDITS[name]
    assert expected in sentence_of_edit(old, new)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_scenario(sentence_of_file, name):
    content, expected = FILES[name]
    assert expected in sentence_of_file(content)


def test_bytes_that_are_not_utf_8(good, sentence_of_file):
    assert "bad.yaml:11: a byte that is not UTF-8" in sentence_of_file(
        good.encode() + b"# caf\xe9\n"
    )


def test_two_documents(good, sentence_of_file):
    assert "a second document starts" in sentence_of_file(good + "---\n" + good)


def test_a_missing_file_and_a_folder(tmp_path, sentence_of):
    assert "there is no such file" in sentence_of("run", "nowhere.yaml")
    assert "this is a folder" in sentence_of("check", tmp_path)
    assert "cannot be read" in sentence_of("check", "x" * 5000)


@pytest.mark.parametrize("given", [{"rounds": 2}, None, 5])
def test_what_is_no_path(given):
    with pytest.raises(ScenarioError) as refused:
        load(given)
    assert str(refused.value) == (
        f"{type(given).__name__} is no path; give that of a scenario file, and changes of it as "
        "overrides, key=value"
    )


def test_overrides_that_are_no_texts(path):
    with pytest.raises(ScenarioError, match=r'"\(.rounds., 2\)" is not an override; write key=va'):
        load(path, [("rounds", 2)])


@pytest.mark.parametrize("given", [None, 5, {"rounds": 2}])
@pytest.mark.parametrize("read", [load, expand])
def test_what_is_no_list_of_overrides(path, read, given):
    with pytest.raises(ScenarioError) as refused:
        read(path, given)
    kind = type(given).__name__
    assert str(refused.value) == (
        f'command line: {kind} is no list of overrides; write key=value texts, as in ["rounds=10"]'
    )


def test_one_override_is_a_text(path):
    assert load(path, "rounds=7").rounds == expand(path, "rounds=7")[0][1].rounds == 7

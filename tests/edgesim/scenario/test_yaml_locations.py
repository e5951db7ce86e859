"""What YAML words mean."""

import pytest

from edgesim.scenario.yaml_locations import read_text, scalar


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
    ],
)
def test_yaml_words(text, value):
    assert scalar(text) == value and type(scalar(text)) is type(value)


def test_quoted_words_stay_words():
    assert read_text("a: '1'\nb: \"true\"\nc: 1\n", "x").tree == {"a": "1", "b": "true", "c": 1}

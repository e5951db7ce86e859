"""The catalogue of methods: names, descriptions, class structure."""

import pytest

from fl.errors import MethodError
from fl.method_base.method import parameters
from fl.methods import available, describe, resolve


@pytest.mark.parametrize("name", available())
def test_every_method_says_what_it_is(name):
    line, source = describe(name)
    cls = resolve(name)
    assert line.endswith(".")
    assert source != "none given"
    assert "Departs from the paper" in cls.__doc__
    assert "What travels" in cls.__doc__
    for parameter in parameters(cls):
        assert parameter.meaning
        assert parameter.source
        assert parameter.check(parameter.default) == parameter.default


def test_resolve():
    assert {"fedalt", "fedavg", "fedlps", "fedmap", "liu", "pruning-only", "spafl"} <= set(
        available()
    )
    assert resolve("pruning-only").__name__ == "PruningOnly"
    with pytest.raises(MethodError, match=r'name is "fedvag"; .*did you mean "fedavg"'):
        resolve("fedvag")

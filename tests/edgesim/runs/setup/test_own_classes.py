"""Classes of the user's own that are no methods, or not as they were meant."""

from __future__ import annotations

import pytest

from edgesim.errors import EdgesimError
from edgesim.runs.run import feasibility

CODE = """\
from dataclasses import dataclass
from fl.method_base.method import Method, param
from fl.methods.fedavg import FedAvg

class Started(Method):
    def stages(self, k, rho): return ()

class Undecorated(FedAvg):
    kept: float = param(0.1, "share that travels", source="ours")

@dataclass(frozen=True, eq=False)
class Decorated(FedAvg):
    kept: float = param(0.1, "share that travels", source="ours")

class Heir(Decorated): pass
"""


@pytest.fixture
def check(tmp_path, few):
    (tmp_path / "m.py").write_text(CODE)
    return lambda name: feasibility(few(f"learning.method.name=./m.py:{name}"), allow_code=True)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Started", "no complete subclass of fl.method_base.method.Method, .*; it lacks local_upd"),
        (
            "Undecorated",
            r"is ./m.py:Undecorated, whose kept is a param, but which has no decorator "
            r"@dataclass\(frozen=True, eq=False\)$",
        ),
    ],
)
def test_what_a_class_lacks_is_named(check, name, sentence):
    with pytest.raises(EdgesimError, match=sentence):
        check(name)


@pytest.mark.parametrize("name", ["Decorated", "Heir"])
def test_parameters_of_a_decorated_class_are_inherited_without_decorator(check, name):
    check(name)

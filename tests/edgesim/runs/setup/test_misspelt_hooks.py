"""Functions of a method that are called nearly as a hook is, and that nothing calls."""

from __future__ import annotations

import pytest

from edgesim.runs.run import feasibility
from edgesim.runs.setup.make_method import hook_warnings
from fl import methods
from fl.methods.fedavg import FedAvg


class Misspelt(FedAvg):
    def agregate(self, state, view, updates):
        return state


class American(FedAvg):
    def personalize(self, state, k):
        return state.w


class Helped(FedAvg):
    def mask(self, state, grant):
        return self.masks(state)

    def masks(self, state):
        return self.everything


class HelpedWithin(FedAvg):
    """By a lambda, a generator, a property and a function beside it, and by name."""

    def mask(self, state, grant):
        return (lambda: self.masks(state))(), sum(self.encoded(k) for k in range(3))

    def masks(self, state): ...

    def encoded(self, k): ...

    @property
    def chosen(self):
        return self.selects()

    def selects(self): ...

    def aggregated(self): ...

    def demands(self):
        return getattr(self, "starts")  # noqa: B009

    def starts(self): ...


def beside(method):
    return method.aggregated(), method.demands()


class Helper(FedAvg):
    def masks(self, state): ...


class HelpedAbove(Helper):
    def mask(self, state, grant):
        return self.masks(state)


@pytest.mark.parametrize(
    ("cls", "end"),
    [
        (Misspelt, "agregate nothing calls; did you mean aggregate?"),
        (American, "personalize nothing calls; did you mean personalise?"),
        (type("Below", (American,), {}), "personalize nothing calls; did you mean personalise?"),
        (Helper, "masks nothing calls; did you mean mask?"),
        (Helped, None),
        (HelpedWithin, None),
        (HelpedAbove, None),
    ],
)
def test_a_misspelt_hook_is_a_warning(cls, end):
    warned = [f"learning.method.name: is m, whose {end}"] if end else []
    assert hook_warnings("m", cls) == warned


@pytest.mark.parametrize("name", methods.available())
def test_shipped_methods_have_no_misspelt_hook(name):
    assert hook_warnings(name, methods.resolve(name)) == []


def test_a_check_shows_the_warning(tmp_path, few):
    code = "class M(FedAvg):\n    def encod(self, job, trained): ...\n"
    (tmp_path / "my.py").write_text(f"from fl.methods.fedavg import FedAvg\n{code}")
    (sentence,) = feasibility(few("learning.method.name=./my.py:M"), allow_code=True).warnings
    assert sentence.endswith("whose encod nothing calls; did you mean encode?")

"""Parameters that are refused or taken."""

import pytest

from fl.errors import MethodError
from fl.method_base.method import bind, check, param, with_length
from fl.methods import resolve


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("fedavg", {"lrr": 1}, r'lrr is no parameter of this method .*did you mean "lr"\?'),
        ("fedavg", {"lr": 0}, r"lr is 0.0; allowed is a number > 0"),
        ("fedavg", {"lr": float("nan")}, "lr is nan"),
        ("fedavg", {"lr": float("inf")}, "lr is inf"),
        ("fedavg", {"lr": "fast"}, 'lr is "fast"; allowed is a number > 0'),
        ("fedavg", {"local_steps": 2.5}, "local_steps is 2.5; allowed is a whole number >= 1"),
        ("fedavg", {"local_steps": True}, "local_steps is true; "),
        ("fedavg", {"weighting": "size"}, 'weighting is "size"; allowed is uniform, samples'),
        (
            "fedavg",
            {"participants": 0},
            "participants is 0; allowed is a whole number >= 1, or none",
        ),
        ("fedalt", {"lr": 0.1}, "lr is no parameter"),
        ("fedsim", {"personal_steps": 2}, r"personal_steps is 2, .*global_steps \(5\)"),
        (
            "liu",
            {"update": "simultaneous", "global_steps": 1},
            r"personal_steps is 5, .*global_steps \(1\)",
        ),
        ("liu", {"rho": 0.9, "rho_max": 0.5}, "rho_max is not read where rho is fixed"),
        (
            "liu",
            {"personal_part": "none", "personal_steps": 3},
            "personal_steps is not read where personal_part is none",
        ),
        ("liu", {"rho_max": 1.5}, "rho_max is 1.5; allowed is a number >= 0 and <= 1"),
        ("liu", {"count_warmup": "no"}, 'count_warmup is "no"; allowed is true or false'),
    ],
)
def test_bad_parameters(bench, name, given, sentence):
    with pytest.raises(MethodError, match=sentence) as caught:
        bind(resolve(name), bench.task, given)
    assert str(caught.value) == f"{caught.value.key} {caught.value.problem}"


def test_good_parameters(bench):
    method = bench.method("liu", rho="none", participants=2, global_lr=1, rho_max=0.5)
    assert method.rho is None
    assert type(method.global_lr) is float
    assert method.rho_bounds() == (0.0, 0.5)
    assert check(resolve("fedsim"), {"personal_steps": 2, "global_steps": 2})["global_steps"] == 2


@pytest.mark.parametrize(
    ("name", "given", "rounds", "followed"),
    [
        ("fedlps", {"participants": 10}, 100, {"xi": 10.0}),  # FedLPS, Section V: R / (K epsilon)
        ("fedlps", {"participants": 10}, 200, {"xi": 20.0}),
        ("fedlps", {}, 200, {"xi": 4.0}),
        ("fedlps", {"participants": 99}, 200, {"xi": 4.0}),  # there are 50
        ("fedlps", {"participants": 10, "xi": 7}, 200, {}),
        ("fedlps", {"ratio": "capability"}, 200, {}),
        ("fedspa", {"moving_rounds": "none"}, 500, {"moving_rounds": 500}),
        ("depthfl", {}, 1000, {"ramp_rounds": 300}),
        ("depthfl", {}, 1, {"ramp_rounds": 1}),
        ("fedavg", {}, 100, {}),
    ],
)
def test_what_follows_from_the_length_of_a_run(name, given, rounds, followed):
    assert with_length(resolve(name), given, rounds, devices=50) == given | followed


def test_an_attribute_that_is_no_parameter_is_told_how_to_be_one():
    class Undecorated(resolve("fedavg")):
        kept: float = param(0.1, "share that travels", source="ours")

    declare = r"kept is no parameter .*; declare kept by param\(...\), in a class with @dataclass\("
    with pytest.raises(MethodError, match=declare):
        check(Undecorated, {"kept": 0.2})

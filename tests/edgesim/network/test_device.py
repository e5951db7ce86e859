"""Work -> cycles -> seconds, and how a scenario's quantities become one value per device."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.network.device import draw
from edgesim.seeds import Seeds
from fl.contracts import Work
from tests.edgesim.network.fleets import make_fleet


@dataclass
class Spec:
    kind: str
    values: tuple


def test_cycles_of_liu_8_and_of_operations():
    fleet = make_fleet(0.5, [3e9, 1e9], cycles_per_weight=[5, np.nan], flops_per_cycle=[np.nan, 4])
    work = Work(weight_steps=6e6, flops=2e8)
    assert fleet.device(0).cycles(work) == 3e7  # 5 x 6e6
    assert fleet.device(0).seconds(work, 3e9) == 0.01
    assert fleet.device(1).cycles(work) == 5e7  # 2e8 / 4
    assert fleet.device(1).seconds(work, 0.5e9) == 0.1
    clocks = np.array([3e9, 0.5e9])  # device 1 gives half of its processor
    assert fleet.seconds(np.array([1, 0]), work, clocks) == pytest.approx([0.1, 0.01], rel=1e-15)


def test_arrays_of_work_go_with_the_devices_asked():
    fleet = make_fleet(0.5, [1e9, 2e9, 4e9], cycles_per_weight=2)
    assert fleet.cycles(np.array([2, 0]), Work(np.array([10.0, 20.0]))).tolist() == [20.0, 40.0]


def test_a_device_needs_exactly_one_cost_of_computing():
    with pytest.raises(ValueError, match="exactly one"):
        make_fleet(0.5, 1e9)
    with pytest.raises(ValueError, match="exactly one"):
        make_fleet(0.5, 1e9, cycles_per_weight=5, flops_per_cycle=4)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (Spec("constant", (2.0,)), [2.0, 2.0, 2.0]),
        (Spec("list", (1.0, 2.0, 3.0)), [1.0, 2.0, 3.0]),
        (Spec("trace", (1.0, 2.0, 3.0, 9.0)), [1.0, 2.0, 3.0]),
        (4, [4.0, 4.0, 4.0]),
    ],
)
def test_what_is_given_is_what_devices_get(spec, expected):
    assert draw(spec, 3, Seeds(0).stream("x")).tolist() == expected


@given(st.integers(1, 40), st.floats(-5, 5), st.floats(0, 5))
def test_uniform_stays_in_its_bounds_and_grows_at_its_end(count, low, width):
    spec = Spec("uniform", (low, low + width))
    values, more = (draw(spec, n, Seeds(0).stream("x")) for n in (count, count + 1))
    assert ((low <= values) & (values <= low + width)).all()
    assert (more[:-1] == values).all()


def test_choice_uses_every_value():
    values = draw(Spec("choice", (1.0, 2.0, 5.0)), 300, Seeds(0).stream("x"))
    assert set(values) == {1.0, 2.0, 5.0}
    assert (
        min(np.bincount(values.astype(int))[[1, 2, 5]]) > 70
    )  # 100 expected, 4 standard deviations


@pytest.mark.parametrize(
    "spec", [Spec("list", (1.0,)), Spec("list", (1.0,) * 4), Spec("trace", (1.0, 2.0))]
)
def test_a_list_has_one_value_per_device(spec):
    with pytest.raises(ValueError, match="one per device"):
        draw(spec, 3, Seeds(0).stream("x"))

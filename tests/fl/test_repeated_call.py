"""A kept value is given again for the same arguments, and for no others."""

import numpy as np
import pytest

from fl.repeated_call import RepeatedCall


def counted(calls, value):
    calls.append(value)
    return value


def test_a_value_is_computed_once_for_the_same_arguments():
    call, calls, gains = RepeatedCall(), [], np.array([1.0, 2.0])
    assert call((gains, 3), lambda: counted(calls, "a")) == "a"
    assert call((gains.copy(), 3), lambda: counted(calls, "b")) == "a"
    assert calls == ["a"]


@pytest.mark.parametrize(
    "other",
    [([1.0, 2.5], 3), ([1.0, 2.0], 4), ([1.0], 3), ([1, 2], 3), ([1.0, np.nan], 3)],
)
def test_other_arguments_have_another_value(other):
    call, calls = RepeatedCall(), []
    call((np.array([1.0, 2.0]), 3), lambda: counted(calls, "a"))
    changed = np.array(other[0]), *other[1:]
    assert call(changed, lambda: counted(calls, "b")) == "b"
    assert call((np.array([1.0, 2.0]), 3), lambda: counted(calls, "c")) == "c"


def test_arguments_that_are_overwritten_later_are_others():
    call, calls, gains = RepeatedCall(), [], np.array([1.0, 2.0])
    call((gains,), lambda: counted(calls, "a"))
    gains[0] = 5.0
    assert call((gains,), lambda: counted(calls, "b")) == "b"
    assert calls == ["a", "b"]

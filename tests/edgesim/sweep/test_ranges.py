"""Ranges of values: both ends, exact steps, one ratio."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.errors import ScenarioError
from edgesim.scenario.units import parse
from edgesim.sweep.ranges import expand_range


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("range(15ms,30ms,5ms)", ["15ms", "20ms", "25ms", "30ms"]),
        ("range(30 ms, 15 ms, -5 ms)", ["30 ms", "25 ms", "20 ms", "15 ms"]),
        ("range(900MHz,1.1GHz,100MHz)", ["900MHz", "1000MHz", "1100MHz"]),
        ("range(0.1,0.5,0.1)", ["0.1", "0.2", "0.3", "0.4", "0.5"]),  # 0.1 + 0.1 + 0.1 is not 0.3
        ("range(20dBm,28dBm,4dBm)", ["20dBm", "24dBm", "28dBm"]),
        ("range(3,3,1)", ["3"]),
        ("log(1MHz,1GHz,4)", ["1MHz", "10MHz", "100MHz", "1000MHz"]),
        ("log(0.001,1,4)", ["0.001", "0.01", "0.1", "1"]),
        ("log(1,8,4)", ["1", "2", "4", "8"]),
        ("plain", ["plain"]),
    ],
)
def test_ranges(text, values):
    assert expand_range(text, "key") == values


@pytest.mark.parametrize(
    "text",
    [
        "range(0,1e999999,1e-999999)",
        "range(0,1e9999,1)",
        "range(0,1e99999999999999999999,1)",
        "log(1,1e9999999,3)",
        "log(1e-400,1e-399,3)",
        "log(1,1e400,3)",
    ],
)
def test_numbers_that_no_computer_holds_are_one_sentence(text):
    with pytest.raises(ScenarioError, match=r"command line: key has (range|log)\(") as error:
        expand_range(text, "key")
    assert len(str(error.value)) < 200


@given(st.decimals(-1000, 1000, places=3), st.decimals("0.001", 10, places=3), st.integers(0, 50))
def test_a_range_meets_both_ends_and_its_steps_exactly(first, step, count):
    last = first + step * count
    values = [
        Decimal(text.removesuffix("ms"))
        for text in expand_range(f"range({first}ms,{last}ms,{step}ms)", "key")
    ]
    assert values == [first + step * i for i in range(count + 1)]


@given(st.integers(1, 10**6), st.integers(2, 10**6), st.integers(2, 30))
def test_log_meets_both_ends_and_has_one_ratio(first, factor, count):
    texts = expand_range(f"log({first}Hz,{first * factor}Hz,{count})", "key")
    values = [parse(text, "Hz") for text in texts]
    assert (len(values), values[0], values[-1]) == (count, first, first * factor)
    ratios = [b / a for a, b in pairwise(values)]
    assert max(ratios) == pytest.approx(
        min(ratios), rel=1e-9
    )  # the values are rounded to 12 digits

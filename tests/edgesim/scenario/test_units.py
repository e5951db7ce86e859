"""Quantities: hand-computed values, exact round trips, and complaints that say what to write."""

import math
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.scenario.units import (
    DIMENSIONS,
    UnitError,
    format_quantity,
    in_unit,
    parse,
    unit_pattern,
)

GOLDEN = [
    ("200 MHz", "Hz", 2e8),
    ("25 ms", "s", 0.025),  # exactly the float 0.025, not 25 * 0.001
    ("35us", "s", 35e-6),
    ("35 µs", "s", 35e-6),
    ("35 μs", "s", 35e-6),
    ("2 min", "s", 120.0),
    ("1.5 h", "s", 5400.0),
    ("0 dBm", "W", 1e-3),
    ("30 dBm", "W", 1.0),
    ("-110 dBm", "W", 1e-14),
    ("3 dBW", "W", 10**0.3),
    ("100 mW", "W", 0.1),
    ("-174 dBm/Hz", "W/Hz", 10**-20.4),
    ("2 nW/Hz", "W/Hz", 2e-9),
    ("100 dB", "dB", 100.0),
    ("1.5 km", "m", 1500.0),
    ("5 mm", "m", 5e-3),
    ("2 kbyte", "bit", 16000.0),
    ("3 Mbit/s", "bit/s", 3e6),
    ("1e-3 J", "J", 1e-3),
    ("+.5 kHz", "Hz", 500.0),
]


@pytest.mark.parametrize(("text", "unit", "value"), GOLDEN)
def test_hand_computed_values(text, unit, value):
    assert parse(text, unit) == value


@pytest.mark.parametrize(("text", "unit", "value"), GOLDEN)
def test_a_number_in_its_unit_is_the_one_that_was_written(text, unit, value):
    number, symbol = re.fullmatch(r"([-+.\de]+) ?(.+)", text.replace("μ", "µ")).groups()
    assert in_unit(value, symbol, unit) == float(number)


def test_nothing_is_no_level():
    assert in_unit(0.0, "dBm", "W") == -math.inf


@pytest.mark.parametrize(
    ("value", "unit", "sentence"),
    [
        (20, "Hz", '20 (no unit); write "20 MHz"'),
        ("25", "s", '25 (no unit); write "25 ms"'),
        (0, "W", '0 (no unit); write "0 W"'),
        (1000000, "Hz", '1000000 (no unit); write "1000000 Hz"'),
        (0.025, "s", '0.025 (no unit); write "0.025 s"'),
        (1e-14, "W", '1e-14 (no unit); write "1e-14 W"'),
        (0.5, "Hz", '0.5 (no unit); write "0.5 MHz"'),
        (-110, "W/Hz", '-110 (no unit); write "-110 dBm/Hz"'),
        ("20 Hz", "s", '"20 Hz" (a frequency); a time is needed, for instance "20 ms"'),
        ("20 mhz", "Hz", '"20 mhz" (unknown unit "mhz"); did you mean mHz or MHz?'),
        (
            "5 parsec",
            "m",
            '"5 parsec" (unknown unit "parsec"); a length is needed, for instance "5 m"',
        ),
        ("30 dB", "W", '"30 dB" (a ratio in decibel); a power is needed, for instance "30 dBm"'),
        ("1e400 Hz", "Hz", '"1e400 Hz" (too large for a computer\'s number); write a finite value'),
        (
            "1e999999999999 Hz",
            "Hz",
            '"1e999999999999 Hz" (too large for a computer\'s number); write a finite value',
        ),
        (
            "1e9999999999999999999 Hz",
            "Hz",
            '"1e9999999999999999999 Hz" (too large for a computer\'s number); write a finite value',
        ),
        (
            "99999 dBm",
            "W",
            '"99999 dBm" (too large for a computer\'s number); write a finite value',
        ),
        ("nan s", "s", '"nan s" (not a number with a unit); write for instance "20 ms"'),
        ("ten ms", "s", '"ten ms" (not a number with a unit); write for instance "20 ms"'),
    ],
)
def test_complaints_say_what_to_write(value, unit, sentence):
    with pytest.raises(UnitError) as caught:
        parse(value, unit)
    assert str(caught.value) == sentence


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(sorted(DIMENSIONS)))
def test_writing_and_reading_loses_no_bit(value, unit):
    assert parse(format_quantity(value, unit), unit) == value


@given(st.integers(-1999, 1999), st.sampled_from(["W", "W/Hz"]))
def test_levels_come_back_as_the_same_float(tenths, unit):
    level = f"{tenths / 10} dBm" + unit.removeprefix("W")
    value = parse(level, unit)
    assert parse(format_quantity(value, unit), unit) == value


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2e7, "Hz", "20 MHz"),
        (0.025, "s", "25 ms"),
        (1e-14, "W", "-110 dBm"),
        (10**-0.2, "W", "28 dBm"),
        (0.1, "W", "100 mW"),
        (0.0, "W", "0 W"),
        (100.0, "dB", "100 dB"),
        (10**-20.4, "W/Hz", "-174 dBm/Hz"),
        (250.0, "m", "250 m"),
        (3 * 1000 / 3600, "m/s", "3 km/h"),
        (12.5, "m/s", "12.5 m/s"),
        (-120 / 3.6, "m/s", "-120 km/h"),
        (1 / 3, "m/s", "1.2 km/h"),
        (0.1234567, "m/s", "0.1234567 m/s"),
        (sys.float_info.max, "m/s", "1.7976931348623157E+308 m/s"),
    ],
)
def test_people_read_the_usual_unit(value, unit, text):
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_not_written(value):
    with pytest.raises(ValueError, match="only finite"):
        format_quantity(value, "s")


@pytest.mark.parametrize(("text", "unit", "value"), GOLDEN)
def test_the_schema_pattern_knows_the_units(text, unit, value):
    import re

    assert re.search(unit_pattern(unit), text.replace("μ", "µ"))
    assert not re.search(unit_pattern(unit), text.split()[0] + " parsec")

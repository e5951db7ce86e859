"""Keys that distinguish scenarios, and the axes they become."""

import pytest
from pytest import approx

from edgesim.results.flat_scenario import differing_keys
from reports.run_data.given_runs import schemes_of
from reports.run_data.swept_keys import distinguishing_keys, short_names, swept_key, value_text
from reports.text.difference_table import difference_table

THRESHOLD, BAND, NAME = "budget.latency_threshold", "network.bandwidth", "learning.method.name"


def test_a_sweep_of_two_numbers_and_a_method_is_told_by_three_keys():
    flats = [
        {
            NAME: method,
            steps: "5",
            THRESHOLD: threshold,
            BAND: band,
            "network.downlink.bandwidth": band,
        }
        for method, steps in (
            ("liu", "learning.method.personal_steps"),
            ("fedavg", "learning.method.local_steps"),
        )
        for threshold in ("15 ms", "20 ms")
        for band in ("1 GHz", "500 MHz")
    ]
    # the steps follow from the method; the other band does not
    assert distinguishing_keys(flats) == ([NAME], [THRESHOLD, BAND, "network.downlink.bandwidth"])
    assert len(differing_keys(flats)) == 6


def test_of_keys_changed_together_both_are_named():
    flats = [{"rounds": r, BAND: b} for r, b in (("10", "1 MHz"), ("20", "2 MHz"), ("30", "3 MHz"))]
    assert distinguishing_keys(flats) == ([], ["rounds", BAND])


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({BAND: ("3.96 MHz", "8.64 MHz")}, {"network.carrier.bandwidth": ("5 MHz", "10 MHz")}),
        (
            {"network.noise": ("-169 dBm/Hz", "-167 dBm/Hz")},
            {"network.carrier.noise_figure": ("5 dB", "7 dB")},
        ),
    ],
)
def test_what_a_carrier_gives_is_told_by_the_key_of_the_carrier(given, chosen):
    """A carrier of 5 MHz at 30 kHz has 11 resource blocks, 3.96 MHz."""
    ((key, values),), ((source, sources),) = given.items(), chosen.items()
    flats = [{key: value, source: text} for value, text in zip(values, sources, strict=True)]
    assert distinguishing_keys(flats) == ([], [source])
    without_carrier = {key: values[0], source: "none"}
    assert distinguishing_keys([*flats, without_carrier]) == ([], [key, source])


def test_a_parameter_that_only_some_set_is_a_word():
    flats = [{NAME: "fedprox"}, {NAME: "fedprox", "learning.method.mu": "0.1"}]
    assert distinguishing_keys(flats) == (["learning.method.mu"], [])


def test_none_beside_two_numbers_keeps_the_axis_and_beside_one_does_not():
    three = [{THRESHOLD: text} for text in ("15 ms", "none", "20 ms")]
    assert distinguishing_keys(three) == ([], [THRESHOLD])
    assert distinguishing_keys(three[:2]) == ([THRESHOLD], [])
    made = swept_key(THRESHOLD, [flat[THRESHOLD] for flat in three])
    assert [made.of(flat) for flat in three] == [15, None, 20]


@pytest.mark.parametrize(
    ("key", "texts", "title", "numbers"),
    [
        (THRESHOLD, ["15 ms", "30 ms"], "latency threshold (ms)", [15, 30]),
        (BAND, ["500 MHz", "1 GHz"], "bandwidth (GHz)", [0.5, 1]),
        ("network.noise", ["-110 dBm", "-90 dBm"], "noise (dBm)", [-110, -90]),
        # 3.0103 dB are a factor of 2; a resolved scenario writes 20 dBm as 100 mW
        ("network.noise", ["-90 dBm", "2e-12 W"], "noise (dBm)", [-90, -86.9897]),
        ("network.noise", ["-170 dBm/Hz", "1e-19 W/Hz"], "noise (dBm/Hz)", [-170, -160]),
        ("devices.0.tx_power", ["10 mW", "13 dBm", "100 mW"], "tx power (dBm)", [10, 13, 20]),
        ("network.power_control.p0", ["1 pW", "10 pW"], "p0 (dBm)", [-90, -80]),
        ("network.noise", ["0 W", "2 W"], "noise (W)", [0, 2]),
        ("devices.0.idle_power", ["500 mW", "28 dBm"], "idle power (mW)", [500, 630.957344]),
        ("learning.method.rho_max", ["0.5", "1.0"], "rho max", [0.5, 1]),
        ("devices.0.count", ["10", "100"], "count", [10, 100]),
    ],
)
def test_axes_have_the_unit_of_the_scenario(key, texts, title, numbers):
    made = swept_key(key, texts)
    assert made.title == title
    assert [made.of({key: text}) for text in texts] == approx(numbers)


def test_keys_that_end_alike_have_names_of_their_own():
    """Two groups of devices: figures and labels of one must not stand for the other."""
    one, other = "devices.0.cpu.frequency", "devices.1.cpu.frequency"
    assert short_names([one]) == {one: "frequency"}
    assert short_names([one, other, BAND]) == {
        one: "devices 0 cpu frequency",
        other: "devices 1 cpu frequency",
        BAND: "bandwidth",
    }
    assert short_names([BAND, "network.downlink.bandwidth"])[BAND] == "network bandwidth"


def test_units_that_do_not_go_together_are_no_axis():
    texts = ["-110 dBm", "-100 dBm", "-174 dBm/Hz"]
    assert swept_key("network.noise", texts) is None
    flats = [{"network.noise": text} for text in texts]
    assert distinguishing_keys(flats) == (["network.noise"], [])
    # nor where those of another scheme are of the other unit
    assert distinguishing_keys(flats[:2]) == ([], ["network.noise"])
    assert distinguishing_keys(flats[:2], flats) == (["network.noise"], [])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 0.5, 0.25], "1, 0.5 and 0.25"),
        (["23 dBm", None], "23 dBm and none"),
        ([True, False], "true and false"),
        # in brackets, as 5 alone is another value
        ([5], "[5]"),
        ([], "[]"),
        ([["a", "b"], [1]], "[[a, b], [1]]"),
        ("liu", "liu"),
        ("[of a folder", "[of a folder"),
    ],
)
def test_a_list_is_written_in_words(value, text):
    assert value_text(str(value)) == text


def test_lists_are_the_same_words_in_labels_and_in_tables(tmp_path, write_run):
    """They were those of Python, ['a', 'b'] and [1, 0.5]."""
    for i, levels in enumerate(("[1, 0.25]", "[1, 0.5]")):
        write_run(tmp_path / str(i), learning={"levels": levels})
    schemes = schemes_of(tmp_path)
    words = ["1 and 0.25", "1 and 0.5"]
    assert [scheme.label for scheme in schemes] == [f"joint (levels {text})" for text in words]
    assert [row[-1] for row in difference_table(schemes).rows] == words


def test_the_name_of_a_file_is_short_and_tells_long_keys_apart():
    """A key of 900 letters ended a report with "File name too long"."""
    keys = [f"learning.method.{letter * 899}{end}" for letter in ("a", "ä") for end in "bc"]
    slugs = [swept_key(key, ["1", "2"]).slug for key in keys]
    assert max(len(f"latency_metric-by-{slug}-a.pdf".encode()) for slug in slugs) < 150
    assert len({*slugs}) == 4 and slugs[0].startswith("aaaa")
    assert slugs == [swept_key(key, ["1", "2"]).slug for key in keys]
    assert swept_key("budget.latency_threshold", ["1 s", "2 s"]).slug == "latency-threshold"

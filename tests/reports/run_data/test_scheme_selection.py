"""Points of a sweep chosen for a report."""

import itertools
import json

import pytest

from reports.figure_catalog import report_figures
from reports.interactive.chart_data import chart_data
from reports.report_options import read_options
from reports.run_data.given_runs import schemes_of
from reports.run_data.scheme_grouping import load_schemes, swept_keys
from reports.run_data.scheme_selection import UnfitOptionError, named_schemes, sliced_schemes
from reports.text.sweep_tables import sweep_pivots


@pytest.fixture
def linked_sweep(tmp_path, write_run):
    """Schemes z and a, listed so: bandwidth and interval of evaluation together, by count."""
    folders = [
        write_run(
            tmp_path / f"{name}-{every}-{count}", scheme=name, bandwidth=f"{every} MHz",
            extra=f"evaluate: {{every: {every}}}\ndevices: [{{count: {count}}}]",
        )
        for name, every, count in itertools.product("za", (1, 2, 4), (3, 4))
    ]  # fmt: skip
    linked = [("network.bandwidth", "evaluate.every")]
    return load_schemes(folders, [folder.resolve() for folder in folders], linked)


@pytest.mark.slow
def test_a_slice_keeps_the_keys_that_the_sweep_changed_together(linked_sweep):
    whole = {figure.name for figure in report_figures(linked_sweep)[0] if "-by-" in figure.name}
    schemes = sliced_schemes(linked_sweep, {"devices.0.count": "3"})
    figures, notes = report_figures(schemes)
    assert notes == [] and "latency-by-bandwidth" in whole
    assert {figure.name for figure in figures if "-by-" in figure.name} == {
        name for name in whole if not name.endswith("by-count")
    }
    (latency,) = (t for t in sweep_pivots(schemes, swept_keys(schemes)) if "latency" in t.name)
    assert [row[0] for row in latency.rows] == ["z", "a"]  # no row of its own for each value


@pytest.mark.parametrize("asked", ["13 dBm", "13", "19.952623149689 mW"])
def test_transmit_powers_are_levels_in_names_and_slices(tmp_path, write_run, asked):
    """A resolved scenario has 10, 13 and 20 dBm as 10 mW, 13 dBm and 100 mW."""
    folders = [
        write_run(tmp_path / text, extra=f"devices: [{{count: 3, tx_power: {text}}}]")
        for text in ("10 mW", "13 dBm", "100 mW")
    ]
    schemes = load_schemes(folders)
    assert [scheme.point for scheme in schemes] == [f"tx power {n} dBm" for n in (10, 13, 20)]
    (kept,) = sliced_schemes(schemes, {"tx_power": asked})
    assert kept.values["devices.0.tx_power"] == "13 dBm"


def test_a_scheme_that_is_named_by_itself_and_with_its_series_stands_twice(swept_schemes):
    label = "liu (bandwidth 10 MHz, latency threshold 15 ms)"
    for names in ({"liu": "Liu", label: "x"}, {label: "x", "liu": "Liu"}):
        with pytest.raises(UnfitOptionError, match=r"schemes names liu .bandwidth 10 MHz.* twice"):
            named_schemes(swept_schemes, names)
    (one, *rest) = named_schemes(swept_schemes, {label: "x", "fedavg": "F"})
    assert one.label == "x" and len(rest) == 6


def test_a_slice_at_a_number_leaves_out_what_has_none_there(tmp_path, write_run):
    """A scheme that does not have the key stays."""
    folders = [
        write_run(tmp_path / str(i), extra=f"budget: {{latency_threshold: {limit}}}")
        for i, limit in enumerate(("none", "15 ms", "20 ms"))
    ]
    schemes = load_schemes([*folders, write_run(tmp_path / "other", scheme="other")])
    key, kept = "budget.latency_threshold", {}
    for asked in ("15 ms", "none"):
        found = sliced_schemes(schemes, {key: asked})
        kept[asked] = [(scheme.series, scheme.values.get(key)) for scheme in found]
    assert kept == {
        "15 ms": [("joint", "15 ms"), ("other", None)],
        "none": [("joint", "none"), ("other", None)],
    }
    (axis,) = swept_keys(schemes)
    points = chart_data(schemes, [axis])["sweep"]["points"]
    assert [point["at"] for point in points] == [[15.0], [20.0], ["none"], [None]]


@pytest.fixture
def solvers(tmp_path, write_run):
    """Two solvers at two bands and three thresholds, of which one also sets a switch."""
    return load_schemes(
        [
            write_run(
                tmp_path / f"{solver}-{band}-{limit}", solver=solver, bandwidth=f"{band} MHz",
                extra=f"budget: {{latency_threshold: {limit} ms}}\nevaluate: {{final: {final}}}",
            )
            for (solver, final), band, limit in itertools.product(
                (("kkt", "true"), ("equal", "false")), (1, 2), (20, 25, 30)
            )
        ]
    )  # fmt: skip


@pytest.mark.parametrize("asked", ["allocation.solver: kkt", "solver: kkt", "final: true"])
def test_a_slice_may_be_at_a_word(solvers, asked):
    """It was said that these results do not have the key."""
    at = read_options(overrides=[f"slice={{{asked}}}"]).slice
    kept = sliced_schemes(solvers, at)
    assert [scheme.values["allocation.solver"] for scheme in kept] == ["kkt"] * 6
    assert {scheme.series for scheme in kept} == {"joint"}
    with pytest.raises(UnfitOptionError, match=r'"solver fair", .* did you mean solver equal\?'):
        sliced_schemes(solvers, {"solver": "fair"})


def test_a_key_of_words_may_be_the_family(solvers):
    """The keys of numbers are held at their middle value."""
    options = read_options(overrides=["figures=rho-by-bandwidth", "family=allocation.solver"])
    [figure], _ = report_figures(solvers, options)
    assert "Shown: latency threshold 25 ms" in figure.caption
    with pytest.raises(UnfitOptionError, match=r"along names allocation.solver, whose values are"):
        report_figures(solvers, read_options(overrides=["along=solver"]))


@pytest.mark.slow
def test_a_slice_keeps_the_order_of_the_sweep(linked_sweep):
    schemes = sliced_schemes(linked_sweep, {"count": "3", "bandwidth": "2 MHz"})
    assert [scheme.label for scheme in schemes] == ["z", "a"]


def _listed(sweep, points):
    """A sweep.json with these points."""
    text = json.dumps({"linked": [], "points": points})
    (sweep / "sweep.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("factor", "labels"),
    [
        # in both sweeps `every` is half of `rounds`
        (2, ["joint (rounds 2)", "joint (rounds 4)", "joint (rounds 8)", "joint (rounds 16)"]),
        # in the second it is 1 whatever the rounds: it was given, and does not follow
        (0, ["joint (rounds 2, every 1)", "joint (rounds 4, every 2)",
             "joint (rounds 8, every 1)", "joint (rounds 16, every 1)"]),
    ],
)  # fmt: skip
def test_what_follows_in_each_of_several_sweeps_distinguishes_nothing(
    tmp_path, write_run, factor, labels
):
    for name, given, share in (("first", (2, 4), 2), ("second", (8, 16), factor)):
        for rounds in given:
            every = rounds // share if share else 1
            extra = f"rounds: {rounds}\nevaluate: {{every: {every}}}"
            write_run(tmp_path / name / str(rounds), extra=extra)
        points = [{"folder": str(r), "values": {"rounds": str(r)}, "seed": 0} for r in given]
        _listed(tmp_path / name, points)
    schemes = schemes_of([tmp_path / "first", tmp_path / "second"])
    assert [scheme.label for scheme in schemes] == labels


def test_what_follows_from_the_keys_of_one_sweep_distinguishes_nothing(tmp_path, write_run):
    """A default that follows from `rounds`, here `every`; a run beside the sweep has its own."""
    folders = [
        write_run(
            tmp_path / f"{count}{rounds}",
            extra=f"rounds: {rounds}\nevaluate: {{every: {rounds}}}\ndevices: [{{count: {count}}}]",
        )
        for count in (3, 6)
        for rounds in (2, 4)
    ]
    values = {"devices.0.count": "", "schemes.joint.rounds": ""}
    points = [{"folder": each.name, "values": values, "seed": 0} for each in folders]
    _listed(tmp_path, points)
    schemes = schemes_of(tmp_path)
    assert [key.title for key in swept_keys(schemes)] == ["rounds", "count"]
    assert [s.label for s in sliced_schemes(schemes, {"count": "3"})] == [
        "joint (rounds 2)",
        "joint (rounds 4)",
    ]
    _listed(tmp_path, points[1:])
    with_another = swept_keys(schemes_of(tmp_path))
    assert [key.key for key in with_another] == ["rounds", "evaluate.every", "devices.0.count"]

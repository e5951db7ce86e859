"""The place that the schemes of finished runs have in their file."""

import pytest

from edgesim import load_run, simulate
from edgesim.errors import ScenarioError
from edgesim.records.checksums import damaged_files
from edgesim.scenario.loader import expand, load
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from tests.conftest import TIMED


@pytest.fixture
def of_file(tmp_path):
    """of_file(schemes) -> the path of the file with these schemes."""
    path = tmp_path / "timed.yaml"

    def write(schemes):
        path.write_text(f"{TIMED}schemes: {{{schemes}}}\n")
        return path

    return write


def placed(folder):
    """Label -> place, in the order of `load_run`."""
    labels = load_run(folder).points["scheme"]
    lines = {label: (folder / label / "scenario.yaml").read_text().splitlines() for label in labels}
    return {
        label: [line.split()[1] for line in text if "scheme_position" in line]
        for label, text in lines.items()
    }


@pytest.mark.slow
def test_finished_runs_have_the_places_of_the_file_as_it_is_now(of_file, tmp_path):
    """b stayed 1, which c has by now, so that it stood before c."""

    def run_all(schemes):
        for label, scenario in expand(of_file(schemes)):
            simulate(scenario, out=tmp_path / "runs" / label)
        return placed(tmp_path / "runs")

    assert run_all("a: {}, b: {rounds: 2}") == {"a": ["0"], "b": ["1"]}
    table = tmp_path / "runs" / "b" / "rounds.csv"
    written = table.stat().st_mtime_ns
    assert run_all("a: {}, c: {rounds: 1}, b: {rounds: 2}") == {"a": ["0"], "c": ["1"], "b": ["2"]}
    assert [damaged_files(tmp_path / "runs" / label) for label in "abc"] == [[], [], []]
    assert table.stat().st_mtime_ns == written  # nothing else is written again


def test_a_run_of_before_places_were_kept_gets_one(of_file, tmp_path):
    path = of_file("a: {}, b: {rounds: 2}")
    alone = load(path, label="b")
    older = alone.model_copy(update={"scheme_position": None})
    simulate(older, out=tmp_path / "runs" / "b")
    assert placed(tmp_path / "runs") == {"b": []}
    simulate(alone, out=tmp_path / "runs" / "b")
    simulate(older, out=tmp_path / "runs" / "b")  # and keeps it where no file says it
    assert placed(tmp_path / "runs") == {"b": ["1"]}
    assert damaged_files(tmp_path / "runs" / "b") == []


@pytest.mark.slow
def test_points_that_a_sweep_finds_finished_have_them_too(of_file, tmp_path):
    def sweep(schemes):
        plan = plan_sweep(of_file(schemes))
        folder = SweepFolder(tmp_path / "swept", plan)
        folder.open()
        for point in folder.to_run():
            simulate(point.scenario, out=folder.of(point))
        folder.close()
        return load_run(tmp_path / "swept").points["scheme"].tolist()

    assert sweep("a: {}, b: {rounds: 2}") == ["a", "b"]
    assert sweep("b: {rounds: 2}, a: {}") == ["b", "a"]


@pytest.mark.slow
@pytest.mark.parametrize("label", [None, "a"])
def test_finished_runs_have_the_section_report_of_the_file_as_it_is_now(of_file, tmp_path, label):
    """A report split one scheme in two where the section was added after some of its seeds."""
    path, out = of_file("a: {}"), tmp_path / "run"
    written = path.read_text() if label else TIMED
    sections = (
        "",
        "report: {untuned: Steps of others.}\n",
        "report: {beside: liu, schemes: {a: proposed}, untuned: None.}\n",
        "report: {untuned: Steps of others.}\n",
        "",
    )
    for i, section in enumerate(sections):
        path.write_text(written + section)
        scenario = load(path, label=label)
        simulate(scenario, out=out)
        simulate(scenario, out=tmp_path / f"new-{i}")
        text = (out / "scenario.yaml").read_text()
        assert text == (tmp_path / f"new-{i}" / "scenario.yaml").read_text()
        assert ("report:" in text) == bool(section)
        assert damaged_files(out) == []


def test_a_place_is_no_key_to_set(of_file):
    path = of_file("a: {}, b: {scheme_position: 7}")
    wanted = "the key scheme_position is unknown here; the place of a scheme is that in its file"
    for overrides in (["scheme_position=9"], ["~scheme_position"]):
        with pytest.raises(ScenarioError, match=f"^command line: {wanted}"):
            load(path, overrides, "a")
    with pytest.raises(ScenarioError, match=f"timed.yaml:12: {wanted}"):
        load(path, label="b")


@pytest.mark.parametrize("override", ["scheme=mine", "~scheme"])
def test_schemes_of_a_file_keep_their_labels(of_file, override):
    """All of them had the one label, and so one folder."""
    with pytest.raises(ScenarioError, match=r'^command line: scheme is a label .*"a"; rename'):
        expand(of_file("a: {}, b: {}"), [override])

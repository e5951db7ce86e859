"""Which points a sweep has, and mistakes that are found before anything runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgesim.errors import RunError, ScenarioError
from edgesim.runs.fingerprint import code_files, digest
from edgesim.scenario.loader import load
from edgesim.sweep.sweep_plan import plan_sweep
from fl.methods.liu import Liu


@pytest.mark.slow
def test_every_combination_of_values_schemes_and_seeds(folder):
    planned = plan_sweep(
        Path("two.yaml"), ["budget.latency_threshold=20ms,25ms", "rounds=2"], "0-1"
    )
    assert [(p.label, p.values["budget.latency_threshold"], p.seed) for p in planned.points] == [
        ("ours", "20ms", 0), ("plain", "20ms", 0), ("ours", "20ms", 1), ("plain", "20ms", 1),
        ("ours", "25ms", 0), ("plain", "25ms", 0), ("ours", "25ms", 1), ("plain", "25ms", 1),
    ]  # fmt: skip
    assert planned.axes == {
        "budget.latency_threshold": ["20ms", "25ms"]
    }  # one value of rounds is no axis
    assert {p.scenario.rounds for p in planned.points} == {2}
    assert planned.points[0].name == "ours, latency_threshold=20ms, seed 0"
    assert len({p.id for p in planned.points}) == 8


def test_a_point_is_what_run_would_run(folder):
    (point,) = plan_sweep(
        Path("tiny.yaml"), ["rounds=2", "budget.latency_threshold=20 ms"], "7"
    ).points
    alone = load("tiny.yaml", ["rounds=2", "budget.latency_threshold=20 ms", "seed=7"])
    assert (point.scenario.digest(), point.seed) == (alone.digest(), 7)


@pytest.mark.slow
def test_a_hash_tells_content_and_nothing_else(folder):
    def ids(*texts, file="tiny.yaml", seeds=None):
        return {p.id for p in plan_sweep(Path(file), texts, seeds).points}

    assert ids("budget.latency_threshold=20ms,25ms") == ids("budget.latency_threshold=25 ms,0.02s")
    assert ids("rounds=2") < ids("rounds=2,3") and not ids("rounds=2") & ids("rounds=3")
    assert not ids(seeds="0") & ids(seeds="1") and ids("seed=0,1") == ids(seeds="0-1")
    (folder / "moved.yaml").write_text("# other\n" + (folder / "tiny.yaml").read_text())
    assert ids(file="moved.yaml") == ids()


def test_other_code_makes_other_points_and_another_method_does_not(folder, monkeypatch):
    def ids():
        return [point.id for point in plan_sweep(folder / "tiny.yaml").points]

    before, files = ids(), code_files(Liu)
    assert ids() == before
    monkeypatch.setattr("edgesim.sweep.sweep_point.code_digest", lambda method: "of other code")
    assert ids() != before
    assert {
        "edgesim.engine.rounds",
        "edgesim.seeds",
        "fl.training.local_sgd",
        "solvers.allocators.kkt",
        "fl.methods.liu",
        "fl.methods.fedalt",
    } <= set(files)
    told = (
        "fl.methods.fedlps.fedlps",
        "edgesim.cli.sweep.sweep_progress",
        "edgesim.cli.app",
        "edgesim.cli.console",
        "reports.html_page",
    )
    assert not set(told) & set(files) and all(path.is_file() for path in files.values())
    (folder / "a.py").write_text("1")
    one = digest({"a.py": folder / "a.py"})
    (folder / "a.py").write_text("2")
    assert len({one, digest({"a.py": folder / "a.py"}), digest({"b.py": folder / "a.py"})}) == 3


def test_a_sweep_block_and_the_command_line_that_wins(folder):
    planned = plan_sweep(Path("block.yaml"))
    assert planned.axes == {"network.bandwidth": ["10 MHz", "20 MHz"], "rounds": ["1", "2", "3"]}
    assert len(planned.points) == 2 * 3 * 2
    planned = plan_sweep(Path("block.yaml"), ["rounds=5"], "9")
    assert planned.axes == {"network.bandwidth": ["10 MHz", "20 MHz"]} and len(planned.points) == 2
    assert {(p.scenario.rounds, p.seed) for p in planned.points} == {(5, 9)}
    assert (
        load("block.yaml").digest() == load("tiny.yaml").digest()
    )  # `edgesim run` runs the file without it
    assert "sweep" not in load("block.yaml").to_yaml()


def test_linked_seeds_and_the_seeds_of_a_block(folder):
    linked = ["seed:rounds=3:1,4:2", "network.bandwidth=10 MHz"]
    planned = plan_sweep(Path("block.yaml"), linked)  # the command line wins
    assert [(p.seed, p.scenario.rounds) for p in planned.points] == [(3, 1), (4, 2)]
    for own in ("seed: [3, 4]", '"seed:network.noise": [[3, -110 dBm], [4, -100 dBm]]'):
        (folder / "both.yaml").write_text((folder / "block.yaml").read_text() + f"  {own}\n")
        sentence = r"both.yaml:15: the sweep has seeds and seed.*; keep one of them"
        with pytest.raises(ScenarioError, match=sentence):
            plan_sweep(Path("both.yaml"))


def test_zipped_keys_are_no_grid(folder):
    planned = plan_sweep(
        Path("tiny.yaml"),
        ["network.bandwidth:rounds=10MHz:1,20MHz:2", "budget.latency_threshold=20ms,25ms"],
    )
    found = {(p.scenario.network.bandwidth_hz, p.scenario.rounds) for p in planned.points}
    assert found == {(1e7, 1), (2e7, 2)} and len(planned.points) == 4


@pytest.mark.parametrize(
    ("given", "rounds"),
    [
        ([], [1, 2, 3]),
        (["~schemes.plain.sweep"], [1, 3]),
        (["schemes.plain.sweep.rounds=5"], [5, 3]),
    ],
)
@pytest.mark.parametrize("written", ["sweep: {rounds: [1, 2]}", "sweep.rounds: [1, 2]"])
def test_the_sweep_block_of_a_scheme_may_be_dotted_and_changed(folder, given, rounds, written):
    text = (folder / "tiny.yaml").read_text()
    schemes = f"schemes: {{plain: {{{written}}}, other: {{rounds: 3}}}}"
    (folder / "own.yaml").write_text(text.replace("rounds: 3", "rounds: 1") + schemes)
    planned = plan_sweep(Path("own.yaml"), given)
    assert [point.scenario.rounds for point in planned.points] == rounds


def test_a_swept_method_chooses_among_the_schemes_with_their_parameters(folder):
    planned = plan_sweep(Path("two.yaml"), ["learning.method.name=fedavg,liu"])
    assert [(p.label, p.scenario.learning.method.params) for p in planned.points] == [
        ("plain", {"local_steps": 7}), ("ours", {"warmup_steps": 2}),
    ]  # fmt: skip
    assert "chooses among the schemes of two.yaml: plain, ours" in planned.notes[0]
    (only,) = plan_sweep(Path("two.yaml"), ["learning.method.name=liu"], only=["ours"]).points
    assert only.label == "ours"


def test_a_key_that_only_the_chosen_scheme_sets_can_be_removed(folder):
    (point,) = plan_sweep(Path("two.yaml"), ["~learning.method.local_steps"], only=["plain"]).points
    assert point.scenario.learning.method.params.get("local_steps") != 7


def test_a_seed_that_is_removed_is_the_default(folder):
    (folder / "seeded.yaml").write_text((folder / "tiny.yaml").read_text() + "seed: 3\n")
    planned = plan_sweep(Path("seeded.yaml"), ["~seed", "rounds=1,2"])
    assert [(p.seed, p.scenario.rounds) for p in planned.points] == [(0, 1), (0, 2)]


def test_a_swept_method_is_one_like_others_where_the_schemes_are_removed(folder):
    planned = plan_sweep(Path("two.yaml"), ["~schemes", "learning.method.name=fedavg,fedprox"])
    assert [p.label for p in planned.points] == ["fedavg", "fedprox"] and planned.notes == []
    swept = ["schemes={own: {}, other: {rounds: 2}}", "learning.method.name=fedavg"]
    planned = plan_sweep(Path("tiny.yaml"), swept)
    assert [p.label for p in planned.points] == ["own", "other"]
    assert "chooses among the schemes of tiny.yaml" in planned.notes[0]


def test_a_resolved_file_of_a_scheme_has_that_scheme(folder):
    (folder / "resolved.yaml").write_text(load("two.yaml", label="plain").to_yaml())
    (point,) = plan_sweep(Path("resolved.yaml"), only=["plain"]).points
    assert point.label == "plain"
    with pytest.raises(ScenarioError, match='no scheme "ours"; it has plain'):
        plan_sweep(Path("resolved.yaml"), only=["ours"])


def test_a_swept_method_of_a_file_without_schemes_starts_afresh(folder):
    text = (
        (folder / "tiny.yaml")
        .read_text()
        .replace("{name: fedavg}", "{name: fedavg, local_steps: 7}")
    )
    (folder / "steps.yaml").write_text(text)
    planned = plan_sweep(Path("steps.yaml"), ["learning.method.name=fedavg,fedprox"])
    assert [p.scenario.learning.method.params for p in planned.points] == [{"local_steps": 7}, {}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tiny.yaml", "bandwith=1,2"], "the key bandwith is unknown"),
        (
            ["tiny.yaml", "network.bandwidth=10 MHz,20"],
            'network.bandwidth=20 (no unit); write "20 MHz"',
        ),
        (["tiny.yaml", "rounds=1,2", "rounds=3"], "rounds is given twice"),
        (
            ["tiny.yaml", "rounds=5,05"],
            'the points "fedavg, rounds=5, seed 0" and "fedavg, rounds=05, seed 0" are the',
        ),
        (["tiny.yaml", "seed=1,2", "--seeds", "0"], "seed and --seeds are both given"),
        (
            ["tiny.yaml", "seed:rounds=0:1,1:2", "--seeds", "5"],
            "seed:rounds and --seeds are both given; keep one of them",
        ),
        (["tiny.yaml", "--seeds", "x"], 'seeds is "x"; write such as 0-4'),
        (["tiny.yaml", "scheme=a,b"], "scheme cannot be swept"),
        (["tiny.yaml", "~name"], "command line: ~name cannot be given to a sweep; change the file"),
        (
            ["tiny.yaml", "learning.method.name=fedavg,fedabc"],
            'learning.method.name is "fedabc"; allowed are',
        ),
        (["two.yaml", "--only", "theirs"], 'two.yaml has no scheme "theirs"; it has ours, plain'),
        (
            ["two.yaml", "learning.method.name=fedprox"],
            "no scheme of two.yaml has (ours: liu; plain: fedavg); add one",
        ),
        (["two.yaml", "~learning.method.name"], "learning.method is a mapping; write a mapping"),
        (["tiny.yaml", "rounds=range(1,2000,1)", "--seeds", "0-99"], "allowed are 100000"),
        (["missing.yaml"], "there is no such file"),
        (["tiny.yaml", "--scheduler", "tcp://h:1"], "--scheduler is only read with --backend dask"),
        (
            ["tiny.yaml", "--backend", "dask", "--scheduler", "tcp://h:1", "--workers", "2"],
            "--workers does not decide how many points run on the workers of --scheduler",
        ),
    ],
)
def test_mistakes_are_one_sentence_before_anything_runs(folder, arguments, sentence, sweep):
    stderr = sweep(*arguments, code=2).stderr
    assert sentence in stderr and len(stderr.splitlines()) == 1
    assert not (folder / "runs").exists()


def test_a_mistake_in_a_block_names_its_line(folder, sweep):
    (folder / "wrong.yaml").write_text(
        (folder / "tiny.yaml").read_text()
        + "sweep:\n  rounds: [1, 2]\n  network.bandwidth: [10 MHz, 20]\n"
    )
    assert sweep("wrong.yaml", code=2).stderr.startswith(
        "wrong.yaml:14: network.bandwidth is 20 (no unit)"
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("name: [a, b]", "name cannot be swept"),
        ("evaluate.targets: [[0.8], [0.9]]", "evaluate.targets cannot be swept"),
        ("'rounds:seed': [[1, 1], [2, 2]]", "rounds is given twice"),
    ],
)
def test_a_key_of_a_block_that_is_refused_names_its_line(folder, line, problem):
    """It was called one of the command line."""
    text = (folder / "tiny.yaml").read_text() + f"sweep:\n  rounds: [1, 2]\n  {line}\n"
    (folder / "wrong.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=f"^wrong.yaml:14: {problem}"):
        plan_sweep(Path("wrong.yaml"))


def test_another_kind_starts_afresh_wherever_the_override_stands(folder):
    (folder / "steps.yaml").write_text(
        (folder / "tiny.yaml")
        .read_text()
        .replace("{name: fedavg}", "{name: fedavg, local_steps: 7, lr: 0.5}")
    )
    for texts in (
        ["learning.method.name=fedprox", "learning.method.local_steps=3"],
        ["learning.method.local_steps=3", "learning.method.name=fedprox"],
    ):
        method = load("steps.yaml", texts).learning.method
        assert (method.name, method.params) == ("fedprox", {"local_steps": 3})
    same = load("steps.yaml", ["learning.method.name=fedavg"]).learning.method
    assert same.params == {"local_steps": 7, "lr": 0.5}


@pytest.mark.parametrize("key", ["schemes.a.rounds", "schemes.b.rounds"])
def test_values_inside_a_scheme_that_change_nothing_name_the_key_and_the_cure(folder, key):
    """Rounds of a, which has a sweep of them itself, and of b, which leave a as it is."""
    text = (folder / "tiny.yaml").read_text()
    path = folder / "own.yaml"
    path.write_text(text + "schemes: {a: {sweep: {rounds: [1, 2]}}, b: {}}\n")
    with pytest.raises(RunError) as refused:
        plan_sweep(path, [f"{key}=3,4"])
    assert str(refused.value).endswith(
        f"are the same run; {key} changes nothing there: its values are equal, it is of another "
        "scheme, or this one's own sweep sets it too; keep one of equal values, and write others "
        "in the sweep block of their scheme"
    )
    path.write_text(
        text + "schemes: {a: {sweep: {rounds: [1, 2]}}, b: {sweep: {rounds: [3, 4]}}}\n"
    )
    assert len(plan_sweep(path).points) == 4  # as it says
    path.write_text(text + "schemes: {a: {}}\n")
    with pytest.raises(RunError, match=r"changes nothing there: its values are equal, .* keep one"):
        plan_sweep(path, ["schemes.a.budget.latency_threshold=30 ms,0.03 s"])


@pytest.mark.slow
def test_a_sweep_is_planned_without_torch():
    """It takes two seconds to load, which nobody waits for before the workers start."""
    code = "from pathlib import Path; from edgesim.sweep.sweep_plan import plan_sweep; import sys"
    code += "; plan_sweep(Path('scenarios/demo.yaml')); print('torch' in sys.modules)"
    place = Path(__file__).parents[3]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

"""The training cache: what is taken from another run is provably the same, to the byte."""

import shutil
from dataclasses import dataclass, replace

import pytest

from edgesim import load, simulate
from edgesim.runs.fingerprint import training_digest
from edgesim.runs.prepared_run import run_rounds, share_training
from edgesim.runs.setup import set_up
from fl.methods import available
from fl.methods.fedavg import FedAvg

CELL = """
name: four
rounds: 2
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}, fading: {kind: rayleigh, coherence: 9 ms}}
devices:
  - count: 4
    tx_power: 23 dBm
    cpu: {frequency: 2 GHz, flops_per_cycle: 4}
    capability: {choice: [1, 0.5]}
    model_budget: [1, 1, 0.25, 0.25]
budget: {latency_threshold: 60 ms}
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 20
  model: mlp
  batch_size: 10
  method: {name: fedavg, lr: 0.05}
"""
WIDER = "network.bandwidth=8 MHz"
PARAMS = {
    "liu": "personal_lr: 0.05",
    "fedmap": "phase_rounds: 1",
    "fedavg": "lr: 0.05",
    "pfedme": "local_steps: 3",
}


@pytest.fixture
def cell(tmp_path):
    path = tmp_path / "four.yaml"
    path.write_text(CELL)
    return lambda *changes: load(path, changes)


@dataclass(frozen=True, eq=False)
class ReadsTheRate(FedAvg):
    """Steps that grow with the rate, which it reads while it gives its orders."""

    def configure(self, state, view, grant):
        job = super().configure(state, view, grant)
        (phase,) = job.phases
        return replace(
            job, phases=(replace(phase, lr=0.05 + 1e-12 * float(view.rate_bps[grant.device])),)
        )


@dataclass(frozen=True, eq=False)
class ReadsItLate(FedAvg):
    """Reads the rate only while it trains."""

    def configure(self, state, view, grant):
        job = super().configure(state, view, grant)
        (phase,) = job.phases
        start = lambda done: phase.start + 1e-9 * float(view.rate_bps[0])  # noqa: E731
        return replace(job, phases=(replace(phase, start=start),))


def setup_of(scenario, folder, cls=None):
    setup = set_up(scenario, processes=1)
    if cls is not None:
        setup = replace(setup, method=cls(task=setup.task, lr=0.05))
    return share_training(setup, folder)


def played(setup):
    run = run_rounds(setup, None, None, None, [])
    return run, (setup.reuse.made, setup.reuse.taken) if setup.reuse else None


def equal_bytes(one, other):
    files = sorted(
        path.name for path in one.iterdir() if path.is_file() and path.name != "timing.json"
    )
    assert files == sorted(
        path.name for path in other.iterdir() if path.is_file() and path.name != "timing.json"
    )
    return [name for name in files if (one / name).read_bytes() != (other / name).read_bytes()]


@pytest.mark.slow
def test_another_band_trains_nothing_again_and_gives_the_same_bytes(cell, tmp_path):
    simulate(cell(), out=tmp_path / "first", shared=tmp_path / "shared")
    for name, shared in (("with", tmp_path / "shared"), ("without", None)):
        simulate(cell(WIDER), out=tmp_path / name, shared=shared)
    assert '"passes_taken": 2' in (tmp_path / "with" / "timing.json").read_text()
    assert "passes" not in (tmp_path / "without" / "timing.json").read_text()
    assert equal_bytes(tmp_path / "with", tmp_path / "without") == []
    assert "rounds.csv" in equal_bytes(
        tmp_path / "with", tmp_path / "first"
    )  # another band: other latencies


@pytest.mark.slow
@pytest.mark.parametrize("name", available())
def test_every_method_runs_again_without_training_and_with_the_same_bytes(cell, tmp_path, name):
    """The strictest case of equal orders; whoever reads more than it shows would differ, or would
    train.
    """
    parameters = f", {PARAMS[name]}" if name in PARAMS else ""
    method = f"learning.method={{name: {name}{parameters}}}"
    scenario = cell(method, "learning.samples_per_device=10")
    simulate(scenario, out=tmp_path / "plain")
    for turn in ("first", "again"):
        simulate(scenario, out=tmp_path / turn, shared=tmp_path / "shared")
        assert equal_bytes(tmp_path / "plain", tmp_path / turn) == []
    assert '"passes_made": 0' in (tmp_path / "again" / "timing.json").read_text()


@pytest.mark.slow
def test_a_method_that_reads_the_rate_is_not_reused_under_another_rate(cell, tmp_path):
    assert played(setup_of(cell(), tmp_path, ReadsTheRate))[1] == (2, 0)
    assert played(setup_of(cell(), tmp_path, ReadsTheRate))[1] == (0, 2)
    assert played(setup_of(cell(WIDER), tmp_path, ReadsTheRate))[1] == (2, 0)
    alone, _ = played(setup_of(cell(WIDER), None, ReadsTheRate))
    assert alone.rounds.equals(played(setup_of(cell(WIDER), tmp_path, ReadsTheRate))[0].rounds)


def test_what_is_read_while_training_is_seen_and_not_kept(cell, tmp_path):
    for _ in range(2):
        run, passes = played(setup_of(cell(), tmp_path, ReadsItLate))
        assert passes == (2, 0)
    assert run.rounds.equals(played(setup_of(cell(), None, ReadsItLate))[0].rounds)


def test_another_pruning_ratio_is_not_reused(cell, tmp_path):
    liu = [
        "learning.method={name: liu, personal_lr: 0.05}",
        "allocation.solver=kkt",
        "network.bandwidth=200 kHz",
    ]
    seen = []
    for threshold, passes in (("30 ms", (2, 0)), ("25 ms", (2, 0)), ("30 ms", (0, 2))):
        run, found = played(setup_of(cell(*liu, f"budget.latency_threshold={threshold}"), tmp_path))
        assert found == passes
        seen.append(run.rounds.rho_mean[0])
    assert 0 < seen[0] < seen[1] and seen[2] == seen[0]  # less time, more pruned


def test_after_another_round_the_same_orders_are_others(cell, tmp_path):
    """At the deadline a narrower band loses uploads: the next round's orders read the same, and
    the state differs.
    """
    still = "network.channel={path_loss: {model: constant, loss: [95 dB, 95 dB, 95 dB, 105 dB]}}"
    deadline = ["clock.mode=deadline", "rounds=3", still]
    narrow = [*deadline, "network.bandwidth=1 MHz"]
    wide, _ = played(setup_of(cell(*deadline), tmp_path))
    run, (made, taken) = played(setup_of(cell(*narrow), tmp_path))
    assert (wide.rounds.late.tolist(), run.rounds.late.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert (made, taken) == (2, 1)
    assert run.rounds.equals(played(setup_of(cell(*narrow), None))[0].rounds)


@pytest.mark.parametrize(
    "change",
    [
        "seed=1",
        "learning.method.lr=0.06",
        "learning.batch_size=5",
        "learning.samples_per_device=21",
        "learning.partition={kind: iid}",
        "learning.model=digits-cnn",
    ],
)
def test_other_learning_is_another_identity(cell, change):
    assert training_digest(set_up(cell(change))) != training_digest(set_up(cell()))


def test_who_holds_what_belongs_to_the_identity(cell):
    """Three devices and four: the keys of the learning are the same, the division of the data is
    not.
    """
    assert (
        len(
            {
                training_digest(set_up(cell(f"devices.0.count={n}", "devices.0.model_budget=1")))
                for n in (3, 4)
            }
        )
        == 2
    )


def test_what_the_learning_does_not_see_keeps_the_identity(cell):
    changes = [
        "rounds=9",
        WIDER,
        "budget.latency_threshold=1 s",
        "clock.mode=deadline",
        "evaluate.every=2",
    ]
    assert training_digest(set_up(cell(*changes))) == training_digest(set_up(cell()))


def test_code_of_the_users_own_and_counted_rounds_are_not_shared(cell, tmp_path):
    (tmp_path / "mine.py").write_text("from fl.methods.fedavg import FedAvg as Mine\n")
    assert (
        share_training(
            set_up(cell("learning.method={name: './mine.py:Mine'}"), allow_code=True), tmp_path
        ).reuse
        is None
    )
    assert (
        share_training(
            set_up(cell("learning.dataset=none", "learning.partition=none")), tmp_path
        ).reuse
        is None
    )


@pytest.mark.slow
def test_a_damaged_or_lost_store_is_trained_again(cell, tmp_path):
    first, _ = played(setup_of(cell(), tmp_path / "s"))
    for path in (tmp_path / "s").rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-9])
    again, passes = played(setup_of(cell(), tmp_path / "s"))
    assert passes == (2, 0) and again.rounds.equals(first.rounds)
    shutil.rmtree(tmp_path / "s")
    assert played(setup_of(cell(), tmp_path / "s"))[1] == (2, 0)
    (tmp_path / "file").write_text("")
    assert played(setup_of(cell(), tmp_path / "file"))[1] == (2, 0)  # nothing can be kept there

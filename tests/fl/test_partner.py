"""Short passes in two processes: the same bytes as in one, whatever becomes of the other process."""

import gc
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
import psutil
import pytest
import torch

from edgesim import load, simulate
from fl.contracts import Adam, Sgd
from fl.executors import partner
from fl.executors.batched import Batched
from fl.executors.orders import read, sendable, written
from fl.executors.partner import LEAST_ROOM, PARTNER_PAYS_S, Paired
from tests.fl.test_executors import CNN, DEADLINE_S, MLP, job, same, task_of, waits_for

WORKS = (
    psutil.STATUS_RUNNING,
    psutil.STATUS_SLEEPING,
    psutil.STATUS_DISK_SLEEP,
    psutil.STATUS_STOPPED,
)


@pytest.fixture
def mlp():
    return task_of(MLP)


@pytest.fixture
def paired(mlp):
    made = Paired(mlp, Batched(mlp), least_s=0.0)
    yield made
    made.end()


def jobs_of(task, count=6, **more):
    return [job(task, k % 5, steps=1 + k % 3, **more) for k in range(count)]


def lives(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() in WORKS


def ends(pid):
    until = time.monotonic() + DEADLINE_S
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.005)
    return not lives(pid)


class Elsewhere(Batched):
    """Does something in the other process before its first jobs; this one waits until that has begun."""

    def __init__(self, task, path, act):
        super().__init__(task)
        self.home, self.path, self.act = os.getpid(), path, act

    def run(self, jobs):
        if os.getpid() == self.home:
            waits_for(self.path)
        elif not self.path.exists():
            self.path.touch()
            self.act()
        return super().run(jobs)


# --- the same bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [MLP, CNN])
@pytest.mark.parametrize("optimiser", [Sgd(), Sgd(0.9, 1e-2, 0.5), Adam()], ids=str)
def test_two_processes_give_the_bytes_of_one(model, optimiser):
    """Common and own starts, masks, rates and factors; ragged batches; submodels; more than one pass; odd numbers."""
    task = task_of(model)
    size, rng = task.layout.size, np.random.default_rng(1)
    some = torch.from_numpy(rng.random(size) < 0.7)
    common = {"optimiser": optimiser, "start": task.initial(), "lr": 0.01}
    jobs = [
        job(task, 0, steps=2, **common),
        job(task, 1, steps=1, **common),
        job(task, 2, steps=3, mask=some, **common),
        job(task, 3, steps=2, first=1, batches="more", **common),
        job(task, 0, steps=0, **common),
        job(task, 3, steps=5, ragged=True, **common),
        job(task, 4, submodel=some, **common),
        job(
            task,
            0,
            **common | {"lr": torch.from_numpy(rng.uniform(0.01, 0.1, size).astype(np.float32))},
        ),
        job(task, 1, scale=torch.from_numpy(rng.uniform(1, 2, size).astype(np.float32)), **common),
        job(task, 2, **common | {"start": task.initial() + 0.1}),
        job(task, 4, **common | {"start": task.initial() - 0.1}),
    ]
    paired = Paired(task, Batched(task), least_s=0.0)
    for some_jobs in (jobs, jobs[::-1], jobs[:3]):
        assert same(paired.run(some_jobs), Batched(task).run(some_jobs))
    assert paired.notes.lines() == []
    paired.end()


def test_places_in_memory_are_told_apart_by_their_strides(mlp, paired):
    """Two starts, masks or rates may begin at one address and have one length."""
    size, wide = mlp.layout.size, torch.rand(2 * mlp.layout.size) / 10
    every, mask = torch.ones(size, dtype=torch.bool), wide > 0.03
    for name, values in (("start", wide), ("lr", wide), ("mask", mask)):
        common = {"start": mlp.initial(), "mask": every, "lr": 0.1}
        jobs = [
            job(mlp, k % 5, **common | {name: values[:size] if k % 2 else values[::2]})
            for k in range(6)
        ]
        alone = [Batched(mlp).run([one])[0] for one in jobs]
        assert same(Batched(mlp).run(jobs), alone) and same(paired.run(jobs), alone), name


def test_rates_that_are_no_plain_floats_and_starts_with_a_gradient(mlp, tmp_path):
    """What another may have made of a number or a tensor is sent like any other."""
    paired = Paired(mlp, Elsewhere(mlp, tmp_path / "begun", lambda: None), least_s=0.0)
    start = mlp.initial().requires_grad_()
    for lr in (np.float64(0.1), np.float32(0.1), 1, float("nan")):
        jobs = [job(mlp, k % 5, lr=lr, start=start) for k in range(6)]
        for one, other in zip(paired.run(jobs), Batched(mlp).run(jobs), strict=True):
            assert torch.equal(one.w.nan_to_num(7.0), other.w.nan_to_num(7.0))
            assert bool(one.w.isnan().any()) == (lr != lr)
    assert paired.notes.lines() == []
    paired.end()


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_whether_a_pass_is_shared_moves_no_byte_with_two_torch_threads(two_threads):
    """A product of a single large model comes out with other last bits."""
    task = task_of(MLP, (1, 28, 28), sizes=(64, 40, 30), batch=128)
    jobs = [job(task, k, steps=4) for k in range(3)]
    made = Paired(task, Batched(task), least_s=0.0)
    shared = made.run(jobs)
    assert same(Paired(task, Batched(task), least_s=9.0).run(jobs), shared)
    made.end()


def test_double_precision(tmp_path):
    task = task_of(MLP, dtype=np.float64)
    jobs = jobs_of(task, start=task.initial().double())
    paired = Paired(task, Elsewhere(task, tmp_path / "begun", lambda: None), least_s=0.0)
    assert same(paired.run(jobs), Batched(task).run(jobs))
    paired.end()


def test_every_model_has_memory_of_its_own_and_a_start_stays_as_it_is(mlp, paired):
    w = mlp.initial()
    trained = paired.run(jobs_of(mlp, start=w))
    assert torch.equal(w, mlp.initial())
    assert len({one.w.data_ptr() for one in trained}) == len(trained)
    assert all(one.w.untyped_storage().nbytes() == 4 * mlp.layout.size for one in trained)
    before = [one.w.clone() for one in trained]
    paired.run(jobs_of(mlp, lr=5.0))
    assert all(torch.equal(one.w, w) for one, w in zip(trained, before, strict=True))


def test_the_process_stays_until_a_pass_needs_more_room(mlp, paired):
    paired.run(jobs_of(mlp))
    first = paired.partner.pid
    paired.run(jobs_of(mlp, 4))
    assert paired.partner.pid == first
    many = jobs_of(
        mlp, LEAST_ROOM // (2 * 4810)
    )  # half of them in the other process, 4 bytes a weight: twice its room
    assert same(paired.run(many), Batched(mlp).run(many))
    assert paired.partner.pid != first and not lives(first)


def test_what_the_other_process_notes_comes_home(mlp, tmp_path, monkeypatch):
    inner = Elsewhere(mlp, tmp_path / "begun", lambda: inner.notes.add("it rains", 3))
    paired = Paired(mlp, inner, least_s=0.0)
    paired.run(jobs_of(mlp))
    assert paired.notes.lines() == ["it rains (3 jobs)"]
    paired.end()


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_an_order_says_all_that_training_looks_at(mlp):
    some = torch.ones(mlp.layout.size, dtype=torch.bool)
    twice = torch.full((mlp.layout.size,), 2.0)
    jobs = [
        job(mlp, 1, steps=2, lr=0.5, batches="other", first=3, ragged=True, optimiser=Sgd(0.5)),
        job(mlp, 3, steps=7, submodel=some, scale=twice, lr=twice / 20),
    ]
    jobs = [replace(one, g=9 + i) for i, one in enumerate(jobs)]
    for one, other in zip(jobs, read(written(jobs)), strict=True):
        assert (one.device, one.g, one.finish) == (other.device, other.g, None)
        (ours,), (theirs,) = one.phases, other.phases
        for name, value in vars(ours).items():
            twin = getattr(theirs, name)
            assert torch.equal(value, twin) if isinstance(value, torch.Tensor) else value == twin, (
                name
            )


def test_what_jobs_have_in_common_is_written_once(mlp):
    w = mlp.initial()
    everything = torch.ones(len(w), dtype=torch.bool)
    many = [job(mlp, k % 5, start=w, mask=everything.view(-1)) for k in range(100)]
    assert len(written(many)) < 5 * len(w) + 3000 < len(written([job(mlp, 0), job(mlp, 0)]))
    assert len({id(one.phases[0]) for one in read(written(many))}) == 1


ALL = torch.ones(4810, dtype=torch.bool)


@pytest.mark.parametrize(
    "odd",
    [
        {"start": lambda done: torch.zeros(4810)},
        {"mask": lambda done: ALL},
        {"submodel": lambda done: ALL},
        {"submodel": (ALL,) * 3},
        {"penalty": lambda w: w.sum()},
        {"criterion": lambda logits, y: logits.square().sum()},
    ],
)
def test_what_holds_functions_is_trained_here(mlp, monkeypatch, odd):
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    jobs = [*jobs_of(mlp, 3), job(mlp, 3, **odd)]
    assert sendable(mlp, jobs[:3]) and not sendable(mlp, jobs)
    assert same(Paired(mlp, Batched(mlp), least_s=0.0).run(jobs), Batched(mlp).run(jobs))


def test_models_of_several_sizes_are_not_sent(mlp):
    w = mlp.initial()
    assert sendable(mlp, [job(mlp, start=w), job(mlp, start=w.clone())])
    for other in (torch.cat([w, w[:1]]), w.double()):
        assert not sendable(mlp, [job(mlp, start=w), job(mlp, start=other)])


def test_jobs_of_several_phases_or_with_an_end_of_their_own_are_not_sent(mlp):
    one = job(mlp)
    assert sendable(mlp, [one])
    assert not sendable(mlp, [replace(one, phases=one.phases * 2)])
    assert not sendable(mlp, [replace(one, finish=lambda done: done[-1])])


def test_a_pass_that_is_too_short_is_not_shared(mlp, monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    paired, jobs = Paired(mlp, Batched(mlp)), jobs_of(mlp)
    assert Batched.pace.seconds(mlp, jobs) < PARTNER_PAYS_S == paired.least_s
    assert same(paired.run(jobs), Batched(mlp).run(jobs))
    Paired(mlp, Batched(mlp), least_s=0.0).run(jobs[:1])
    assert paired.run([]) == []


# --- when something goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGKILL, "signal 9"), (signal.SIGSEGV, "signal 11")]
)
def test_a_process_that_is_killed_at_work_changes_no_byte(mlp, tmp_path, number, word):
    inner = Elsewhere(mlp, tmp_path / "begun", lambda: os.kill(os.getpid(), number))
    paired, jobs = Paired(mlp, inner, least_s=0.0), jobs_of(mlp, 7)
    expected = Batched(mlp).run(jobs)
    assert same(paired.run(jobs), expected)
    (line,) = paired.notes.lines()
    assert word in line and "trained again (4 jobs)" in line
    assert paired.partner is None
    assert same(paired.run(jobs), expected)  # the next pass has a process again
    assert lives(paired.partner.pid) and paired.notes.lines() == [line]
    paired.end()


def test_a_process_that_is_killed_asleep_changes_no_byte(mlp, paired):
    jobs = jobs_of(mlp)
    expected = paired.run(jobs)
    pid = paired.partner.pid
    os.kill(pid, signal.SIGKILL)
    assert ends(pid)
    assert same(paired.run(jobs), expected)
    (line,) = paired.notes.lines()
    assert "signal 9" in line and line.endswith("(3 jobs)")
    assert same(paired.run(jobs), expected) and paired.notes.lines() == [line]


@pytest.mark.parametrize("reaper", ["nobody", "the system", "somebody else"])
def test_an_ended_process_that_others_waited_for_changes_no_byte(mlp, paired, reaper):
    """A program may ignore SIGCHLD, or wait for any child."""
    jobs = jobs_of(mlp)
    expected = paired.run(jobs)
    before = signal.signal(
        signal.SIGCHLD, signal.SIG_IGN if reaper == "the system" else signal.SIG_DFL
    )
    try:
        os.kill(paired.partner.pid, signal.SIGKILL)
        assert ends(paired.partner.pid)
        if reaper == "somebody else":
            os.waitpid(paired.partner.pid, 0)
        assert same(paired.run(jobs), expected)
        (line,) = paired.notes.lines()
        assert ("signal 9" if reaper == "nobody" else "exit code 0") in line
        assert same(paired.run(jobs), expected) and paired.notes.lines() == [line]
        paired.end()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_half_an_answer_is_none(mlp, monkeypatch, tmp_path):
    class Half(Connection):
        def send_bytes(self, buf):
            os.write(self.fileno(), struct.pack("!i", len(buf)) + buf[:3])
            os._exit(7)

    monkeypatch.setattr(partner, "Connection", Half)
    paired = Paired(mlp, Elsewhere(mlp, tmp_path / "begun", lambda: None), least_s=0.0)
    assert same(paired.run(jobs_of(mlp)), Batched(mlp).run(jobs_of(mlp)))
    (line,) = paired.notes.lines()
    assert "exit code 7" in line


def test_an_error_there_is_said_and_its_jobs_are_trained_here(mlp, tmp_path):
    def fail():
        raise ValueError("no paper in the printer\nnor ink")

    paired, jobs = Paired(mlp, Elsewhere(mlp, tmp_path / "begun", fail), least_s=0.0), jobs_of(mlp)
    assert same(paired.run(jobs), Batched(mlp).run(jobs))
    (line,) = paired.notes.lines()
    assert "a process failed (ValueError: no paper in the printer)" in line
    paired.end()


def test_an_order_that_nobody_has_begun_is_taken_back(mlp, paired):
    jobs = jobs_of(mlp)
    expected = paired.run(jobs)
    pid = paired.partner.pid
    os.kill(pid, signal.SIGSTOP)
    for _ in range(2):
        assert same(paired.run(jobs), expected)
    os.kill(pid, signal.SIGCONT)
    others = jobs_of(mlp, lr=0.2)
    for _ in range(20):
        assert same(paired.run(others), Batched(mlp).run(others))
    assert paired.partner.pid == pid and paired.notes.lines() == []


@pytest.fixture
def no_new_children():
    before = set(psutil.Process().children())
    yield
    gc.collect()
    assert not set(psutil.Process().children()) - before


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interruption_leaves_no_process_behind(mlp, tmp_path, error):
    home = os.getpid()

    class Broken(Elsewhere):
        def run(self, jobs):
            if os.getpid() == home:
                waits_for(self.path)
                raise error
            return super().run(jobs)

    before, begin = psutil.Process().children(), time.monotonic()
    paired = Paired(
        mlp, Broken(mlp, tmp_path / "begun", lambda: time.sleep(DEADLINE_S)), least_s=0.0
    )
    with pytest.raises(error):
        paired.run(jobs_of(mlp))
    assert time.monotonic() - begin < DEADLINE_S / 2
    assert paired.partner is None and psutil.Process().children() == before


def test_nothing_outlives_its_executor(mlp, no_new_children):
    paired = Paired(mlp, Batched(mlp), least_s=0.0)
    paired.run(jobs_of(mlp))
    pid = paired.partner.pid
    del paired
    gc.collect()
    assert not lives(pid)


RUN = """
name: short
rounds: 2
network: {bandwidth: 5 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices: [{count: 40, tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 100}}]
allocation: {solver: equal}
learning:
  {dataset: digits, partition: {kind: dirichlet, alpha: 1}, model: mlp, batch_size: 10, method: {name: fedavg, lr: 0.1}}
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_ends_the_process_that_it_started(tmp_path, monkeypatch, fails):
    """Also where it stops with an error that its caller holds on to; then its memory has been counted, too."""
    started, make = [], partner.Partner.__init__
    monkeypatch.setattr(
        partner.Partner, "__init__", lambda self, *a: (make(self, *a), started.append(self.pid))[0]
    )
    monkeypatch.setattr(partner.Paired, "_pays", lambda self, jobs: len(jobs) > 1)
    (tmp_path / "short.yaml").write_text(RUN)

    def stop(event):
        if fails and event["kind"] == "round":
            raise ZeroDivisionError

    caught = None
    try:
        simulate(load(tmp_path / "short.yaml"), progress=stop, processes=2)
    except ZeroDivisionError as error:
        caught = error
    assert len(started) == 1 and not lives(started[0]) and (caught is not None) == fails


def test_ctrl_c_is_not_for_the_other_process_to_obey(mlp, paired):
    jobs = jobs_of(mlp)
    expected = paired.run(jobs)
    os.kill(paired.partner.pid, signal.SIGINT)
    time.sleep(0.2)
    assert lives(paired.partner.pid)
    assert same(paired.run(jobs), expected) and paired.notes.lines() == []


@pytest.mark.parametrize(
    "last", ["os.kill(os.getpid(), 9)", "sys.exit(3)", "raise KeyboardInterrupt"]
)
def test_the_process_ends_with_its_parent(last):
    program = f"""
import os, sys
from fl.executors.batched import Batched
from fl.executors.partner import Paired
from tests.fl.test_executors import MLP, job, task_of
task = task_of(MLP)
paired = Paired(task, Batched(task), least_s=0.0)
paired.run([job(task, k) for k in range(4)])
print(paired.partner.pid, flush=True)
{last}
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode != 0
    assert ends(int(done.stdout))


def test_a_fork_of_this_process_leaves_its_partner_alone(mlp, paired):
    jobs = jobs_of(mlp)
    expected, pid = paired.run(jobs), paired.partner.pid
    child = os.fork()
    if child == 0:
        code = 1
        try:
            again = same(paired.run(jobs), expected) and paired.partner.pid != pid
            paired.end()
            code = 0 if again else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lives(pid) and same(paired.run(jobs), expected) and paired.partner.pid == pid


def test_without_fork_a_pass_is_trained_here(mlp, monkeypatch):
    monkeypatch.delattr(os, "fork")
    jobs = jobs_of(mlp)
    assert same(Paired(mlp, Batched(mlp), least_s=0.0).run(jobs), Batched(mlp).run(jobs))


def test_a_system_that_is_out_of_processes_is_said_once(mlp, monkeypatch):
    def full():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    paired, jobs = Paired(mlp, Batched(mlp), least_s=0.0), jobs_of(mlp)
    for _ in range(2):
        assert same(paired.run(jobs), Batched(mlp).run(jobs))
    assert paired.notes.lines() == [
        "one process instead of 2: Resource temporarily unavailable (3 jobs)"
    ]

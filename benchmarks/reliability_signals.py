"""Kill and stop commands at random moments, resume them, and compare every byte: Linux only.

Each of `edgesim run`, `edgesim sweep` and `edgesim sweep --backend dask` is disturbed again and
again in one folder until it ends, then the folder is compared with an undisturbed one and the next
folder is begun. A disturbance is ``kill -9`` of the command or of one of its workers, or SIGINT,
SIGTERM or SIGHUP for the command or for its whole process group, as a terminal sends it. The
process by which Python's multiprocessing tracks semaphores is not killed alone: Python itself then
prints tracebacks, though every byte is the same.

    python benchmarks/reliability_signals.py --kills 60 --signals 60 --seed 0
    python benchmarks/reliability_signals.py --only sweep --untrained
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

SCENARIO = """\
name: disturbed
rounds: 20
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}, fading: {kind: rayleigh, coherence: 10 ms}}
devices:
  - {count: 4, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning:
  dataset: digits
  partition: {kind: iid}
  model: mlp
  batch_size: 20
  method: {name: fedavg, local_steps: 20}
allocation: {solver: equal}
"""
SWEEP = ["network.bandwidth=20MHz,30MHz", "--seeds", "0-1", "--workers", "2"]  # training is shared
COMMANDS = {
    "run": ["run", "disturbed.yaml"],
    "sweep": ["sweep", "disturbed.yaml", *SWEEP],
    "dask": ["sweep", "disturbed.yaml", *SWEEP, "--backend", "dask"],
}
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNTRAINED = ["learning.dataset=none", "~learning.partition", "rounds=100"]  # loads no torch
PATIENCE_S = 5.0  # until a command that is stopped has ended
NOT_COMPARED = {"timing.json", "lock"}  # seconds of this machine; who writes there now


class Campaign:
    """Counts of what was tried and of what went wrong.

    Args:
        folder: to work in.
        seed: of the moments and the kinds.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.tried: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.slowest_s = 0.0  # end after a signal
        self.seconds = 0.0  # that an undisturbed command takes
        (folder / "disturbed.yaml").write_text(SCENARIO)

    def disturb(self, name: str, kills: int, stops: int) -> None:
        """One kind of command, so many times."""
        start_s = time.monotonic()
        start(self.folder, name, "reference").communicate()
        self.seconds = time.monotonic() - start_s
        expected = files_of(self.folder / "reference")
        kinds = ["kill"] * kills + ["stop"] * stops
        self.random.shuffle(kinds)
        while kinds:
            while kinds and not self._once(name, kinds[-1]):
                kinds.pop()
            process = start(self.folder, name, "disturbed")
            _, complaint = process.communicate()
            self._note(process.returncode == 0, f"{name}: resumption: {complaint}")
            found = files_of(self.folder / "disturbed")
            differ = [path for path in expected if found.get(path) != expected[path]]
            self._note(not differ, f"{name}: other bytes in {differ[:3]}")
            self.tried["folders compared"] += 1
            print(f"{name}: {kills + stops - len(kinds)} of {kills + stops}", flush=True)
            shutil.rmtree(self.folder / "disturbed")
        shutil.rmtree(self.folder / "reference")

    def _once(self, name: str, kind: str) -> bool:
        """Start or resume the command and disturb it; True where it had ended before."""
        is_new = not (self.folder / "disturbed").exists()
        process, start_s = start(self.folder, name, "disturbed"), time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=self.random.uniform(0.1, self.seconds))
            if is_new:  # the machine was busier when the undisturbed command was timed
                self.seconds = min(self.seconds, time.monotonic() - start_s + 0.1)
            return True
        label = self._kill(process) if kind == "kill" else self._stop(process)
        self.tried[f"{name}: {label}"] += 1
        end_s = time.monotonic() + 1.0
        while (rest := session_of(process.pid)) and time.monotonic() < end_s:
            time.sleep(0.01)
        self._note(not rest, f"{name}: {label} left {len(rest)} processes")
        for pid in rest:
            os.kill(pid, signal.SIGKILL)
        return False

    def _kill(self, process: subprocess.Popen[str]) -> str:
        """A worker that dies is replaced, and the command goes on to its end."""
        killable = [pid for pid in session_of(process.pid) if not tracks_semaphores(pid)]
        victim = self.random.choice(killable or [process.pid])
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return "kill -9 too late"
        _, complaint = process.communicate()
        self._note("Traceback" not in complaint, f"kill -9: {complaint}")
        return "kill -9 of the command" if victim == process.pid else "kill -9 of a worker"

    def _stop(self, process: subprocess.Popen[str]) -> str:
        number = self.random.choice(STOPS)
        send, whom = self.random.choice([(os.kill, "the command"), (os.killpg, "its group")])
        start_s = time.monotonic()
        try:
            send(process.pid, number)
            _, complaint = process.communicate(timeout=PATIENCE_S)
        except ProcessLookupError:
            return "signal too late"
        except subprocess.TimeoutExpired:
            process.kill()
            _, complaint = process.communicate()
        self.slowest_s = max(self.slowest_s, time.monotonic() - start_s)
        label = f"{number.name} for {whom}"
        right = process.returncode == 128 + number and complaint.count("\n") == 1
        ended = process.returncode == 0 and not complaint  # just before
        self._note(right or ended, f"{label}: exit code {process.returncode}: {complaint}")
        return label

    def _note(self, right: bool, problem: str) -> None:
        if not right:
            self.wrong.append(problem)
            print(f"WRONG: {problem}", flush=True)


def start(folder: Path, name: str, out: str) -> subprocess.Popen[str]:
    """A command in a session of its own, which handles every signal."""

    def handle_all() -> None:
        for number in STOPS:
            signal.signal(number, signal.SIG_DFL)

    command = [sys.executable, "-m", "edgesim", *COMMANDS[name], "--out", out, "--quiet"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=handle_all,
    )
    while process.poll() is None and not catches_signals(process.pid):
        time.sleep(0.002)  # Python itself is still starting: no line of ours has run
    return process


def catches_signals(pid: int) -> bool:
    """True once the command is in charge of SIGHUP, the last of the three."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGHUP - 1) & 1)


def tracks_semaphores(pid: int) -> bool:
    """Is it the resource tracker of multiprocessing?"""
    try:
        # as an option of warnings the name stands in the command of a worker too
        return b"multiprocessing.resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def session_of(leader: int) -> list[int]:
    """Processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = entry.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(entry.parent.name))
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file that a run or a sweep wrote, by its path."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if path.name not in NOT_COMPARED
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, default in (("--kills", 60), ("--signals", 60), ("--seed", 0)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--only", choices=COMMANDS, help="one kind of command")
    parser.add_argument("--untrained", action="store_true", help="runs that only count time")
    given = parser.parse_args()
    if given.untrained:
        for command in COMMANDS.values():
            command.extend(UNTRAINED)
    names = [given.only] if given.only else list(COMMANDS)
    with tempfile.TemporaryDirectory(prefix="edgesim-signals-") as folder:
        campaign = Campaign(Path(folder), given.seed)
        for name in names:
            campaign.disturb(name, given.kills // len(names), given.signals // len(names))
    for label, count in sorted(campaign.tried.items()):
        print(f"{count:5}  {label}")
    print(f"slowest end after a signal: {campaign.slowest_s:.2f} s")
    print(f"{len(campaign.wrong)} went wrong")
    sys.exit(bool(campaign.wrong))


if __name__ == "__main__":
    main()

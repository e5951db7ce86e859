"""Single flipped bits in every stored file: noticed, harmless, or wrong without a word.

    python benchmarks/reliability.py 250 --seed 0 --only summary.json

A tiny run is interrupted after two of its three rounds, and another one is finished. One bit of one
of their files is flipped at a time, and the run is started again. It may refuse in one sentence, or
end with the bytes of the undisturbed run; anything else counts as wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":  # else solvers.py beside this file would be the package of its name
    sys.path[0] = str(Path(__file__).parent.parent)

import edgesim
from edgesim.errors import EdgesimError
from edgesim.records.checkpoint import large_arrays
from edgesim.records.checksums import SUMS, damaged_files
from edgesim.results.sweep_file import sweep_points
from edgesim.scenario.loader import Scenario
from fl.stored_files import BLANK, sealed

SCENARIO = """
name: reliability
rounds: 3
network:
  bandwidth: 1.5 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [95 dB, 104 dB]}}
devices:
  - {count: 2, tx_power: 23 dBm, idle_power: 0.1 W,
     cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 100}}
budget: {latency_threshold: 20 ms}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 30
  model: digits-cnn
  batch_size: 10
  method: {name: liu, personal_lr: 0.05, global_lr: 0.05}
"""
REFUSED, OLDER, REWRITTEN, HARMLESS, WRONG = (
    "refused",
    "from the checkpoint before",
    "written again",
    "same bytes",
    "WRONG",
)
OUTCOMES = (REFUSED, OLDER, REWRITTEN, HARMLESS, WRONG)
LARGE_BYTES = 1 << 12  # so that this small run has files of large arrays
WORDS = ("timing.json", SUMS, "summary.json")  # they differ by what they say of the damage


class InterruptedHere(Exception):
    """Ends a run in the middle."""


class Campaign:
    """The undisturbed, the interrupted and the shared folders that are damaged.

    Args:
        place: an empty folder.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "s.yaml").write_text(SCENARIO, encoding="utf-8")
        self.scenario: Scenario = edgesim.load(place / "s.yaml")
        self.finished = place / "finished"
        edgesim.simulate(self.scenario, out=self.finished, shared=place / "shared")
        self.interrupted = place / "interrupted"
        with suppress(InterruptedHere):
            edgesim.simulate(self.scenario, out=self.interrupted, progress=_stop_after_round_1)
        points = [{"folder": "points/a", "label": "liu", "values": {"rounds": "3"}, "seed": 0}]
        (place / "sweep").mkdir()
        content = json.dumps({"digest": BLANK, "name": "s", "points": points}, indent=2)
        (place / "sweep" / "sweep.json").write_bytes(sealed(content.encode()))
        self.bytes = self.content(self.finished)

    @staticmethod
    def content(folder: Path) -> dict[str, bytes]:
        """The files of a run whose bytes must not differ; of summary.json all but the warnings."""
        kept = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
        summary = json.loads(kept["summary.json"])
        summary.pop("warnings")
        kept = {name: data for name, data in kept.items() if name not in WORDS}
        return {**kept, "summary": json.dumps(summary).encode()}

    def files(self) -> Iterator[tuple[str, Path, Callable[[Path], str]]]:
        """Name, file, and what judges a copy of the file's folder after a flip."""
        for folder in (self.interrupted, self.finished):
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder)
                used = folder == self.finished or name.parts[0] == "checkpoint"
                if used and path.is_file() and path.stat().st_size:
                    yield f"{folder.name}: {shortened(name)}", path, self.resumed
        for path in sorted((self.place / "shared").rglob("*.safetensors"))[:2]:
            yield f"stored training: {path.name[:8]}", path, self.reused
        yield "sweep.json", self.place / "sweep" / "sweep.json", self.listed

    def root_of(self, path: Path) -> Path:
        """The folder directly below the place, which is copied and damaged."""
        return self.place / path.relative_to(self.place).parts[0]

    def resumed(self, folder: Path) -> str:
        """Start the run again in a damaged folder."""
        seen = (folder / "summary.json").exists() and bool(damaged_files(folder))
        try:
            run = edgesim.simulate(self.scenario, out=folder)
        except EdgesimError:
            return REFUSED
        if self.content(folder) != self.bytes:
            return WRONG
        warnings = " ".join(run.summary["warnings"])
        if "went on from the one before" in warnings:
            return OLDER
        return REWRITTEN if "written again" in warnings and seen else HARMLESS

    def reused(self, folder: Path) -> str:
        """Another run that would take its training from a damaged folder."""
        out = folder.parent / "reused"
        shutil.rmtree(out, ignore_errors=True)
        edgesim.simulate(self.scenario, out=out, shared=folder)
        return HARMLESS if self.content(out) == self.bytes else WRONG

    def listed(self, folder: Path) -> str:
        """Read a damaged sweep.json."""
        try:
            points = sweep_points(folder)
        except EdgesimError:
            return REFUSED
        return HARMLESS if points == sweep_points(self.place / "sweep") else WRONG

    def flip(self, path: Path, judge: Callable[[Path], str], draw: random.Random) -> str:
        """Flip one bit of a file in a copy of its folder, and judge what comes of it."""
        root, copy = self.root_of(path), self.place / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(root, copy)
        damaged = copy / path.relative_to(root)
        damaged.write_bytes(flipped(damaged.read_bytes(), draw))
        try:
            return judge(copy)
        except Exception as error:  # a traceback for the user
            return f"{WRONG}: {type(error).__name__}"


def shortened(name: Path) -> str:
    """The name of a file of a run, whose name may be a digest."""
    return (name.parent / name.name[:8] if len(name.name) == 64 else name).as_posix()


def flipped(content: bytes, draw: random.Random) -> bytes:
    """The bytes with one bit changed."""
    changed = bytearray(content)
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _stop_after_round_1(event: dict) -> None:
    if event["kind"] == "round" and event["round"] == 1:
        raise InterruptedHere


def outcomes(
    place: Path, flips: int, seed: int = 0, only: str = ""
) -> Iterator[tuple[str, Counter[str]]]:
    """Name of a stored file -> how often its flips ended in what.

    Args:
        place: an empty folder.
        flips: for each file.
        seed: of the bits.
        only: a part of the names of the files that are damaged.
    """
    campaign = Campaign(place)
    for name, path, judge in campaign.files():
        if only not in name:
            continue
        draw = random.Random(f"{seed} {name.split(':')[0]} {path.suffix}")
        yield name, Counter(campaign.flip(path, judge, draw) for _ in range(flips))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flips", type=int, nargs="?", default=20, help="for each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files with this in their name")
    given = parser.parse_args()
    large_arrays.LARGE_BYTES = LARGE_BYTES
    total: Counter[str] = Counter()
    print(f"{'one flipped bit in':56}", *(f"{name:>{len(name) + 2}}" for name in OUTCOMES))
    with tempfile.TemporaryDirectory() as place:
        for name, found in outcomes(Path(place), given.flips, given.seed, given.only):
            found[WRONG] = sum(n for what, n in found.items() if what.startswith(WRONG))
            counts = (f"{found[each]:>{len(each) + 2}}" for each in OUTCOMES)
            print(f"{name:56}", *counts, flush=True)
            total.update({each: found[each] for each in OUTCOMES})
    print(f"{'all':56}", *(f"{total[each]:>{len(each) + 2}}" for each in OUTCOMES))
    sys.exit(bool(total[WRONG]))


if __name__ == "__main__":
    main()

"""Every method in the simulator: both clocks, a quarter of the devices late, resumed, in the
shipped scenarios.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.records.checkpoint.run_checkpoint import RunFolder
from edgesim.runs.fingerprint import result_digest
from edgesim.runs.prepared_run import run_rounds
from edgesim.runs.setup import set_up
from edgesim.scenario.base_file import base_of
from edgesim.scenario.loader import expand
from fl.methods import available
from reports.html_page import write_report
from reports.report_options import options_from
from tests.golden.scenario_texts import EIGHT

ROOT = Path(__file__).parent.parent
STEPS = 3  # a pass over the 20 samples of a device, and half of another
TWO_PARTS = {"personal_lr": 0.05, "global_lr": 0.05, "personal_steps": STEPS, "global_steps": STEPS}
PARAMS = {
    "liu": TWO_PARTS,
    "fedalt": TWO_PARTS,
    "fedsim": TWO_PARTS,
    "fedmap": {"phase_rounds": 1, "local_steps": STEPS},
    "spafl": {"local_epochs": 1, "lr": 0.01},
    "local": {"local_epochs": 1, "lr": 0.01},
    "prunefl": {"reconfigure_every": 2, "lr": 0.05, "local_steps": STEPS},
    "lotteryfl": {"accuracy_to_prune": 0, "lr": 0.05, "local_steps": STEPS},
    "hermes": {"accuracy_to_prune": 0, "lr": 0.05, "local_steps": STEPS},
    "pfedme": {"local_steps": STEPS, "lr": 0.02},
}
WIDER_BAND = {  # else nobody is in time: twice the bits, a larger model
    "scaffold": ("network.bandwidth=8 MHz",),
    "prunefl": ("network.bandwidth=8 MHz",),
    "moon": ("network.bandwidth=40 MHz",),
}
TABLES = (
    "rounds.csv",
    "device_rounds.parquet",
    "spans.parquet",
    "scores.parquet",
    "measures.csv",
    "summary.json",
)
SLOW = [6, 7]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("every") / "eight.yaml"
    path.write_text(EIGHT)

    def make(name, *changes):
        given = PARAMS.get(name, {"lr": 0.05, "local_steps": STEPS})
        params = ", ".join(f"{key}: {value}" for key, value in given.items())
        method = f"learning.method={{name: {name}, {params}}}"
        small = ("rounds=3", "learning.samples_per_device=20")
        return load(path, [method, *small, *WIDER_BAND.get(name, ()), *changes])

    return make


@pytest.fixture(scope="module")
def whole(scenario, tmp_path_factory):
    """whole(name): a finished run that waits for everybody, made once for all tests of a method."""

    @cache
    def of(name):
        return simulate(scenario(name), out=tmp_path_factory.mktemp(name) / "whole")

    return of


# The tests of one method stand together, for the sake of that run.
@pytest.mark.slow
@pytest.mark.parametrize("name", available(), scope="module")
class TestMethod:
    def test_a_quarter_of_the_devices_late_at_the_deadline(self, scenario, whole, name):
        """Two of eight processors are far too slow: their rounds are lost, everybody else's are
        aggregated.
        """
        run = simulate(scenario(name, "clock.mode=deadline", "rounds=2"))
        rows = run.device_rounds
        assert len(run.rounds) == 2 and (run.rounds.latency_s <= 0.06 * (1 + 2e-6)).all()
        assert rows[rows.device.isin(SLOW)].status.isin(["late", "infeasible"]).mean() >= 0.5
        assert (rows[~rows.device.isin(SLOW)].status == "arrived").mean() > 0.5
        assert run.rounds.accuracy.between(0, 1).all() and np.isfinite(run.rounds.loss).all()
        assert run.rounds.bits_down.gt(0).all() or name == "local"
        waits = whole(name)
        assert (waits.rounds.arrived + waits.rounds.infeasible == 8).all()
        assert waits.rounds.time_s[1] > run.rounds.time_s[1] or rows.status.eq("infeasible").any()

    def test_interrupted_after_two_rounds_and_resumed(self, scenario, whole, name, tmp_path):
        """What a method remembers goes through the checkpoint: same bytes as in one go."""
        setup = set_up(scenario(name))

        def stop(event):
            if event["kind"] == "round" and event["round"] == 1:
                raise KeyboardInterrupt

        folder = RunFolder(tmp_path / "parts", result_digest(setup))
        with pytest.raises(KeyboardInterrupt):
            run_rounds(setup, folder, folder.open(), stop, [])
        folder.close()
        parts = simulate(scenario(name), out=tmp_path / "parts")
        for table in TABLES:
            same = (parts.folder / table).read_bytes() == (whole(name).folder / table).read_bytes()
            assert same, table

    def test_what_is_charged_was_sent_and_computed(self, whole, name):
        """Bits and FLOPs of the rounds are the sums over devices, and nobody computes or sends for
        nothing.
        """
        rounds, rows = whole(name).rounds, whole(name).device_rounds
        took_part = rows[rows.status != "infeasible"]
        assert rounds.flops.to_numpy() == pytest.approx(
            rows.groupby("round").flops.sum().to_numpy(), rel=1e-12
        )
        assert took_part.flops.gt(0).all() and took_part.compute_s.gt(0).all()
        assert (took_part.bits_up.eq(0) == (name == "local")).all()


@pytest.mark.slow
def test_one_scenario_has_every_method():
    schemes = [one for _, one in expand(ROOT / "scenarios" / "all-methods.yaml", [])]
    assert sorted(one.learning.method.name for one in schemes) == available()


@pytest.mark.slow
def test_that_scenario_runs_with_every_method_and_makes_a_report(tmp_path):
    """One round of four devices: `TestMethod` has more of each method."""
    folders = []
    short = ["rounds=1", "evaluate.every=1", "devices.0.count=4"]
    for label, one in expand(ROOT / "scenarios" / "all-methods.yaml", short):
        run = simulate(one, out=tmp_path / label.replace(" ", "-"))
        assert len(run.rounds) == 1 and run.rounds.accuracy.between(0, 1).all()
        folders.append(run.folder)
    page = write_report(folders, tmp_path / "page", options_from({"figures": ["costs"]}))
    assert "SCAFFOLD" in page.read_text(encoding="utf-8")


SCENARIOS = sorted((ROOT / "scenarios").rglob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_smoke_line_of_every_shipped_scenario_runs(path):
    """The command in the file's own comment or in that of its base (or the file as it is), one
    round of its first and of its last scheme.
    """
    text, below = (file.read_text(encoding="utf-8") for file in (path, base_of(path)))
    command = re.compile(r"edgesim run \S+\.yaml ([^\n]*learning\.dataset=digits[^\n]*)")
    commands = command.findall(text) or command.findall(below)
    learns = "dataset: none" not in text
    small = ("dataset: digits", "base: ")  # laid over a file that is tested itself
    assert commands or any(word in text for word in small) or "liu-20mhz" in path.stem or not learns
    changes = commands[0].split() if commands else ["learning.dataset=digits"] * learns
    schemes = list(expand(path, [*changes, "rounds=1", "evaluate.every=1"]))
    for _, one in {label: (label, one) for label, one in (schemes[0], schemes[-1])}.values():
        run = simulate(one)
        assert len(run.rounds) == 1 and (not learns or 0 <= run.rounds.accuracy[0] <= 1)

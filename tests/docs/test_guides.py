"""The code in docs/guide runs as it is printed there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.clocks import clock_choice
from edgesim.errors import EdgesimError

ROOT = Path(__file__).parent.parent.parent
GUIDES = ROOT / "docs" / "guide"


def blocks(page: str) -> list[str]:
    """Python blocks of a guide, also those inside of lists."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    found = re.findall(r"^ *```python\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in found]


@pytest.fixture
def scenario(tmp_path):
    """A scenario of examples/ in a folder of its own, with some code beside it."""

    def make(file, code, *changes, like="own_method.yaml"):
        (tmp_path / file).write_text(code, encoding="utf-8")
        text = (ROOT / "examples" / like).read_text(encoding="utf-8")
        path = tmp_path / "own.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, ["rounds=2", *changes])

    return make


def test_the_method_of_the_guide(scenario):
    method = "{name: ./topk.py:TopK, kept: 0.05, lr: 0.1}"
    run = simulate(
        scenario("topk.py", blocks("method.md")[0], f"learning.method={method}"), allow_code=True
    )
    total = run.summary["weights"]["total"]
    sent = round(0.05 * total) * 32 + total  # values, and a bitmap that names them
    assert run.device_rounds.bits_up.max() <= sent
    assert run.rounds.bits_up.iloc[0] < 0.1 * run.rounds.bits_down.iloc[0]
    paid = f"learning.method={method}", "accounting={mask_overhead: bitmap}"
    run = simulate(scenario("topk.py", blocks("method.md")[0], *paid), allow_code=True)
    assert (run.device_rounds.bits_up == sent).all()


COUNTED = """\
from dataclasses import dataclass, replace

from fl.method_base.affine_demand import total_work
from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class Counted(FedAvg):
    def payload(self, rho):
        return replace(super().payload(rho), bits_up=None)

    def encode(self, job, trained):
        return replace(super().encode(job, trained), bits=1000.0)
"""
PLANNED = """
    def planned(self, k, rho):
        return total_work(self.stages(k, rho)), 1200.0
"""


def test_bits_that_only_training_knows_are_planned_as_the_guide_says(scenario):
    """`Sent` has them, and `planned` what a round is planned with: one without the other fails."""
    text = (GUIDES / "method.md").read_text(encoding="utf-8")
    bullet = text[text.index("* Where bits are known only") :].split("\n* ")[0]
    assert all(f"`{name}" in bullet for name in ("bits_up=None", "Sent", "planned"))
    method = "learning.method={name: ./counted.py:Counted, lr: 0.1}"
    with pytest.raises(EdgesimError, match="give a number, or define planned"):
        simulate(scenario("counted.py", COUNTED, method), allow_code=True)
    run = simulate(scenario("counted.py", COUNTED + PLANNED, method), allow_code=True)
    assert (run.device_rounds.bits_up == 1000).all()


def test_the_allocator_of_the_guide(scenario):
    code, session = blocks("allocator.md")
    change = "allocation.solver=./greedy.py:least_then_rest"
    run = simulate(scenario("greedy.py", code, change, like="own_allocator.yaml"), allow_code=True)
    assert (run.rounds.arrived == 10).all()
    exec(code + session, {})


def test_the_selection_rule_of_the_guide(scenario):
    clocks = ", ".join(f"{k + 1} GHz" for k in range(10))
    changes = [
        "learning.selection=./choose.py:fast_half",
        "learning.method={name: fedavg, lr: 0.1, participants: 2}",
        f"devices.0.cpu.frequency=[{clocks}]",
    ]
    run = simulate(scenario("choose.py", blocks("selection.md")[0], *changes), allow_code=True)
    asked = run.device_rounds.device
    assert len(asked) == 4 and asked.min() >= 5


@pytest.mark.slow
def test_the_path_losses_of_the_guide(scenario, tmp_path):
    free_space, ray_traced, bus, formula = blocks("channel.md")
    exec(formula, {})
    counted = "learning={dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}"
    place = "devices.0.distance={uniform: [20 m, 200 m]}"
    code = free_space + bus
    changes = counted, "network.channel=./radio.py:free_space", place
    far = simulate(scenario("radio.py", code, *changes), allow_code=True)
    assert far.device_rounds.rate_bps.round(-1).nunique() == 10
    changes = counted, "network.channel=./radio.py:Bus", "rounds=400"
    stops = simulate(scenario("radio.py", code, *changes), allow_code=True).rounds
    stopped = stops.latency_s > 1.5 * stops.latency_s.min()
    assert stopped.iloc[0] and 0 < stopped.sum() < 200
    layout = "network.layout={kind: sites, position: {list: [[0 m, 0 m], [300 m, 0 m]]}}"
    place = "devices.0.position={disc: 9 m}"
    changes = counted, layout, "network.noise=-174 dBm/Hz", "network.channel=./radio.py:ray_traced"
    near = scenario("radio.py", ray_traced, *changes, place)
    np.save(near.folder / "losses.npy", np.where(np.eye(10, 2), 90.0, 100.0))
    sectors = simulate(near, allow_code=True).device_rounds.sector[:10]
    assert sectors.tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.slow
def test_the_trace_of_the_guide(scenario):
    text = (GUIDES / "channel.md").read_text(encoding="utf-8")
    trace = re.search(r"```\n(time \[ms\].*?)```", text, re.DOTALL)[1]
    counted = "learning={dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}"
    changes = counted, "network.channel={trace: rates.csv}", "devices.0.count=2"
    run = simulate(scenario("rates.csv", trace, *changes))
    assert run.device_rounds.rate_bps.to_numpy() == pytest.approx([17.1e6, 4.05e6] * 2)
    wider = simulate(scenario("rates.csv", trace, *changes, "network.bandwidth=20 MHz"))
    assert wider.rounds.time_s.to_numpy() == pytest.approx(run.rounds.time_s.to_numpy())
    changes = *changes, "network.noise=-174 dBm/Hz"
    narrow, wide = (
        simulate(scenario("rates.csv", trace, *changes, f"network.bandwidth={band}")).rounds
        for band in ("1 MHz", "20 MHz")
    )
    assert (wide.time_s < 0.9 * narrow.time_s).all()


def test_the_clock_of_the_guide(scenario, monkeypatch):
    """Half of ten devices arrive, the others are late, in every round."""
    names = {}
    exec(blocks("clock.md")[0], names)
    monkeypatch.setattr(clock_choice, "Deadline", lambda **keys: names["HalfAreBack"]())
    own = scenario(
        "none.py",
        "",
        "learning.method={name: fedavg, lr: 0.1}",
        "devices.0.cpu.frequency={uniform: [1 GHz, 3 GHz]}",
        "clock.mode=deadline",
        "budget.latency_threshold=1 s",
    )
    assert simulate(own).rounds[["arrived", "late"]].to_numpy().tolist() == [[5, 5], [5, 5]]

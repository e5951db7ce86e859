"""What is inside the answer of a hook of the user's own, and is not what can be trained or kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app

EXAMPLES = Path(__file__).parents[3] / "examples"
CLASS = """\
from dataclasses import replace
import torch
from fl.contracts import Sent
from fl.methods.fedavg import FedAvg
class FedPer(FedAvg):
    def """
PHASE = "local_update(self, *a): return (replace(super().local_update(*a)[0], {}),)"
STATE = "{0}(self, state, *a): return replace(super().{0}(state, *a), {1})"
PAYLOAD = "payload(self, rho): return replace(super().payload(rho), bits_{}={})"
VALUES = {  # the hook, and what is said about it
    "encode(self, job, trained): return Sent(trained.w.numpy(), self.shared)": (
        r"encode, values of Sent, gives ndarray \[\d{4}\]; return a tensor \[\d{4}\]"
    ),
    "encode(self, job, trained): return Sent(trained.w, self.shared)": (
        r"encode, travels of Sent, gives ndarray \[\d{4}\]; return a tensor \[\d{4}\]"
    ),
    PHASE.format("mask=self.everything"): (
        r"local_update, mask of Phase, gives ndarray \[\d{4}\]; return a tensor \[\d{4}\]"
    ),
    PHASE.format("steps=2.5"): "steps of Phase, gives float; return a whole number",
    PHASE.format("steps=-2"): "steps of Phase, gives int; return a whole number >= 0",
    PHASE.format("mask=self.shared_mask.float()"): (
        r"mask of Phase, gives Tensor \[\d{4}\] of torch.float32; return a tensor bool \[\d{4}\]"
    ),
    "encode(self, job, trained): return Sent(trained.w, self.shared_mask.float())": (
        r"travels of Sent, gives Tensor \[\d{4}\] of torch.float32; return a tensor bool"
    ),
    STATE.format("aggregate", "w=state.w.double()"): (
        r"w of the state, gives Tensor \[\d{4}\] of torch.float64; return one of torch.float32"
    ),
    STATE.format("observe", "notes={'x': torch.zeros(3)}"): (
        r"whose notes of the state cannot be stored \(Object of type Tensor is not JSON"
    ),
    STATE.format("observe", "notes={'x': [0, (1, 2)]}"): (
        r"cannot be stored \(notes\['x'\]\[1\] is a tuple, which comes back as a list\); notes are"
    ),
    STATE.format("observe", "notes={'x': {3: 0.5}}"): (
        r"cannot be stored \(notes\['x'\] has the key 3, which comes back as a text\); notes are"
    ),
    PHASE.format("lr=torch.ones(3)"): r"lr of Phase, gives Tensor \[3\]; return a tensor \[\d{4}",
    PHASE.format("lr=-0.1"): "lr of Phase, is -0.1; return a finite number of at least 0",
    PHASE.format("lr=float('nan')"): "lr of Phase, is nan; return a finite number of at least",
    PHASE.format("lr=torch.full((6058,), torch.inf)"): "lr of Phase, is inf; return",
    PHASE.format("lr=torch.arange(6058.0) - 3.0"): "lr of Phase, is -3; return a finite number of",
    PHASE.format("penalty=lambda v: v"): (
        r"minimises what has the shape \[\d{4}\]; criterion, loss and penalty of a Phase give one"
    ),
    PHASE.format("criterion=lambda logits, y: logits"): r"minimises what has the shape \[\d+, 10\]",
    PHASE.format("loss=lambda w, x, y: torch.tensor(1.0)"): "minimises what has no gradient; crite",
    PHASE.format("loss=lambda w, x, y: 5.0"): "minimises float; criterion, loss and penalty of a",
    PHASE.format("loss=lambda w, x, y: (w.sum(),) * 3"): (
        "loss of Phase, gives tuple; return one number, or a pair of them"
    ),
    PHASE.format("loss=lambda w, x, y: (w.sum(), w)"): (
        r"loss of Phase, gives Tensor \[\d{4}\]; return one number, a tensor"
    ),
    PHASE.format("penalty=lambda v: None"): "minimises NoneType; criterion, loss and penalty of a",
    PHASE.format("loss=lambda *_: None, penalty=lambda v: v.sum()"): "minimises NoneType; crite",
    PHASE.format(
        "criterion=lambda *_: 5.0, penalty=lambda v: v.sum()"
    ): "minimises float; criterion",
    PHASE.format("effective=lambda v, rng: v[:10]"): (
        r"effective of Phase, gives Tensor \[10\]; return a tensor \[6058\], or a longer one"
    ),
    PHASE.format("effective=lambda v, rng: None"): "effective of Phase, gives NoneType; return a",
    PHASE.format("scale=torch.ones(3)"): r"scale of Phase, gives Tensor \[3\]; return a tensor",
    PHASE.format("submodel=(self.shared_mask,)"): (
        r"submodel of Phase, gives tuple of 1; return one mask, or one for each of the \d+ steps"
    ),
    STATE.format("aggregate", "memo={'x': object()}"): (
        r"aggregate, memo\['x'\] of the state, gives object; return a tensor"
    ),
    STATE.format("aggregate", "memo={3: state.w}"): (
        r"aggregate, memo of the state, the key 3, gives int; return a name, a text"
    ),
    STATE.format("retain", "local={'3': state.w}"): (
        r"retain, local of the state, the key '3', gives str; return a device's number"
    ),
    STATE.format("retain", "local={3: state.w}"): (
        r"state keeps \[6058\] at device 3, no personal weights \[0\]; a method that keeps"
    ),
    STATE.format("retain", "local={3: 1.0}"): (
        r"retain, local\[3\] of the state, gives float; return a tensor"
    ),
    "measures(self, state): return {'norm': state.w}": (
        r"measures, 'norm' gives Tensor \[\d{4}\]; return a number"
    ),
    PAYLOAD.format("up", "float('nan')"): "whose bits_up are nan; give a finite number of at least",
    PAYLOAD.format("up", "torch.zeros(3)"): (
        r"payload, bits_up of Payload, gives Tensor \[3\]; return a number"
    ),
    PAYLOAD.format("down", "torch.zeros(3)"): (
        r"payload, bits_down of Payload, gives Tensor \[3\]; return a number"
    ),
    "measures(self, state): return 3.0": "measures gives float; return a dict",
}


ORDERS = """select(self, state, view): return view.idle[[8 - state.g]]
    def observe(self, state, report):
        k, w = report.g, state.w
        key = f"{9 - k}"
        held = {"at": {**state.notes.get("at", {}), key: k}}
        memo, local = state.memo | {key: w}, state.local | {9 - k: w}
        return replace(state, notes=held, memo=memo, local=local)
    def personalise(self, state, k): return state.w
    def measures(self, state):
        orders = state.local, state.memo, state.notes["at"]
        return {f"order {i}": float("".join(map(str, each))) for i, each in enumerate(orders)}
"""


def run(tmp_path, code: str, out: str = "out", rounds: int = 1):
    (tmp_path / "own_method.py").write_text(CLASS + code)
    scenario = tmp_path / "s.yaml"
    scenario.write_text((EXAMPLES / "own_method.yaml").read_text())
    command = ["run", scenario, "--allow-code", "--out", tmp_path / out, f"rounds={rounds}"]
    return CliRunner().invoke(app, [*map(str, command), "learning.executor=resident"])


@pytest.mark.parametrize("code", VALUES)
def test_values_that_cannot_be_trained_or_kept(tmp_path, code):
    result = run(tmp_path, code)
    assert result.exit_code == 2, result.output
    assert re.search(
        rf"s.yaml:\d+: learning.method.name names a method .*{VALUES[code]}", result.output
    )


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("penalty=lambda: 0.0", "<lambda>"),
        ("criterion=lambda logits: logits.sum()", "<lambda>"),
        ("project=lambda w: None", "<lambda>"),
        ("project=torch.relu_", "relu_"),
    ],
)
def test_a_function_of_a_phase_with_other_arguments(tmp_path, code, name):
    """None of the user's lines is running when Python refuses the call."""
    result = run(tmp_path, PHASE.format(code))
    assert result.exit_code == 2, result.output
    assert re.search(
        r"s.yaml:\d+: learning.method.name is ./own_method.py:FedPer, which failed: "
        rf"\S+own_method.py:6: TypeError: .*{name}\(\) takes \d positional argument",
        result.output,
    )


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "project=torch.clamp_",
            "project of Phase, raised RuntimeError: torch.clamp: At least one of 'min' or 'max' "
            "must not be None; it gets w [P], and the velocity [P] or None",
        ),
        ("penalty=torch.relu_", "penalty of Phase, raised RuntimeError: a leaf Variable that"),
        ("collect=torch.det", "collect of Phase, raised RuntimeError: linalg.det: The input"),
        ("criterion=torch.add", "criterion of Phase, raised RuntimeError: The size of tensor"),
        ("criterion=torch.nn.BCELoss()", "criterion of Phase, raised ValueError: Using a target"),
    ],
)
def test_a_function_of_torch_that_fails_is_named(tmp_path, code, sentence):
    result = run(tmp_path, PHASE.format(code))
    assert result.exit_code == 2, result.output
    assert f"learning.method.name names a method whose local_update, {sentence}" in result.output


def test_measures_may_be_numbers_of_any_library(tmp_path):
    numbers = "{'norm': state.w.norm(), 'size': self.everything.sum(), 'round': state.g}"
    result = run(tmp_path, f"measures(self, state): return {numbers}")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "measures.csv").read_text().count("norm") == 1


def test_what_a_method_remembers_has_the_same_order_in_a_resumed_run(tmp_path):
    """A hook that adds up a dict rounds in the order of its keys."""
    for out, rounds in ("resumed", 2), ("resumed", 3), ("whole", 3):
        result = run(tmp_path, ORDERS, out, rounds)
        assert result.exit_code == 0, result.output
    tables = [(tmp_path / out / "measures.csv").read_text() for out in ("resumed", "whole")]
    assert tables[0] == tables[1]
    assert tables[0].count(",789.0") == 3

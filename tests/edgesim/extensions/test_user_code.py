"""Code of the user's own that is wrong: one sentence with file and line, exit code 2, no folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app

CLASS = "from fl.methods.fedavg import FedAvg\nclass thing(FedAvg):\n    "
EXAMPLES = Path(__file__).parents[3] / "examples"
ALLOCATORS = {
    "return problem.bits * float('nan'), problem.bits * 0": "returned shares with nan",
    "return problem.bits * 0 - 0.5, problem.bits * 0": "below 0",
    "return problem.bits * 0 + 0.9, problem.bits * 0": "the shares add up to 9, above 1",
    "return problem.bits * 0, problem.bits * 0 + 2": "above",
    "return [0.1], [0.5]": "of shape",
    "return None": "returned NoneType",
    "return 'a', 'b'": "shape|not numbers",
    "return problem.bits * 0j, problem.bits * 0": "complex",
    "return 1 / 0": r"my.py:\d+: ZeroDivisionError",
    "raise SystemExit(7)": r"my.py:\d+: SystemExit",
}
HOOKS = [
    "personal(self)",
    "select(self, state, view)",
    "local_update(self, state, k, w, grant)",
    "demand(self, state, view, chosen)",
]
FILES = {
    "import nosuchmodule_at_all": (
        r"my.py:1: ModuleNotFoundError: No module named 'nosuchmodule_at_all'; "
        "what it imports must be installed, or stand in the same file"
    ),
    "def f(:": r"my.py:1: SyntaxError: [^()]*$",
    "x = 1\neval('1 +')": r"my.py:2: SyntaxError: invalid syntax \(<string>, line 1\)",
    "raise SyntaxError('own')": r"my.py:1: SyntaxError: own",
    "raise SystemExit(7)": r"my.py:1: SystemExit",
    "x = 1": "defines no thing",
    "thing = 5": "no function of a problem|no complete subclass",
}
METHODS = {
    "class thing: pass": "no complete subclass",
    "def thing(problem): pass": "no complete subclass",
    "from fl.method_base.method import Method\nclass thing(Method): pass": "no complete subclass",
    CLASS + "def personal(self): return [True]": "no mask bool",
    CLASS + "def select(self, state, view): return [99]": (
        r"s.yaml:\d+: learning.method.name names a method whose select gives \[99\]; return"
    ),
    CLASS + "def select(self) -> 'list[int]': return []": (
        r"whose select\(self\) is called as select\(self, state, view\)"
    ),
    CLASS + "def local_update(self, state, k, w, grant): raise SystemExit(7)": "SystemExit: 7",
    CLASS + "personal = 5": "whose personal is no method",
    CLASS + "def architecture(self, given): return given": (
        r"whose architecture\(self, given\) is called as architecture\(given\)"
    ),
    CLASS + "def architecture(given): return 5": ("gives no fl.models.architectures.Architecture"),
    CLASS + "def architecture(given): return given.nonsense": (
        r"my.py:3: AttributeError: .*nonsense"
    ),
    "from fl.methods.fedavg import FedAvg\nfrom fl.models.architectures import build\nclass thing(FedAvg):\n"  # noqa: E501
    "    def architecture(given): return build('mlp', (1, 5, 5), 3)": (
        r"architecture\(\) is for 1x5x5 and 3 classes; the data have 1x8x8 and 10 classes"
    ),
}


def run(tmp_path, kind: str, code: str, *changes: str, command: str = "run"):
    text = (EXAMPLES / f"own_{kind}.yaml").read_text()
    for name in ("own_allocator.py:proportional", "own_method.py:FedPer"):
        text = text.replace(name, "my.py:thing")
    (tmp_path / "s.yaml").write_text(text)
    (tmp_path / "my.py").write_text(code + "\n")
    out = tmp_path / "out"
    return CliRunner().invoke(
        app, [command, str(tmp_path / "s.yaml"), *changes, "--allow-code", "--out", str(out)]
    ), out


def assert_refused(result, out, says):
    assert result.exit_code == 2, result.output
    assert len(result.output.strip().splitlines()) == 1
    assert re.search(says, result.output), result.output
    assert not out.exists()


@pytest.mark.parametrize("body", ALLOCATORS)
def test_wrong_allocators(tmp_path, body):
    """The sentence names the line of the scenario, or of the code that failed."""
    result, out = run(tmp_path, "allocator", f"def thing(problem):\n    {body}")
    assert_refused(result, out, ALLOCATORS[body])
    says = "(: thing returned | is ./my.py:thing, which failed: )"
    assert_refused(result, out, rf"s.yaml:\d+: allocation.solver{says}")


@pytest.mark.parametrize("kind", ["allocator", "method"])
@pytest.mark.parametrize("code", FILES)
def test_wrong_files(tmp_path, kind, code):
    assert_refused(*run(tmp_path, kind, code), FILES[code])


@pytest.mark.parametrize("code", METHODS)
def test_wrong_methods(tmp_path, code):
    assert_refused(*run(tmp_path, "method", code), METHODS[code])


PHASE = (
    "local_update(self, *a): import dataclasses; "
    "return (dataclasses.replace(super().local_update(*a)[0], {}),)"
)
REPLACED = "({0}): import dataclasses; return dataclasses.replace(super().{1}({2}), {{}})"
PAYLOAD = "payload" + REPLACED.format("self, rho", "payload", "rho")
ENCODE = "encode" + REPLACED.format("self, *a", "encode", "*a")
ANSWERS = {  # what a hook of the user's own gives, and what is said about it
    "local_update(self, state, k, w, grant): pass": "local_update gives NoneType; return a tuple",
    "local_update(self, *a): return super().local_update(*a)[0]": "local_update gives Phase; retu",
    "payload(self, rho): return 5.0": "payload gives float; return a Payload",
    "stages(self, k, rho): pass": "stages gives NoneType; return a tuple of Stage",
    "encode(self, job, trained): return trained.w": r"encode gives Tensor \[\d+\]; return a Sent",
    "aggregate(self, state, view, updates): pass": "aggregate gives NoneType; return a State",
    "aggregate(self, state, view, updates): return type(state)(1, state.w[:5])": (
        r"aggregate, w of the state, gives Tensor \[5\]; return a tensor \[\d{4}"
    ),
    "retain(self, state, updates): pass": "retain gives NoneType; return a State",
    "observe(self, state, report): pass": "observe gives NoneType; return a State",
    "personalise(self, state, k): pass": r"personalise gives NoneType; return a tensor \[\d{4}",
    "select(self, state, view): pass": r"s.yaml:\d+: .*select gives None; return devices",
    "start(self): pass": "start gives NoneType; return a State",
    "mask(self, state, grant): pass": r"mask gives NoneType; return a mask, an array bool \[\d{4}",
    "mask(self, state, grant): return self.everything[:5]": r"mask gives ndarray \[5\]; return a",
    "start(self): return type(super().start())(0, super().start().w[:5])": (
        r"start, w of the state, gives Tensor \[5\]; return a tensor \[\d{4}"
    ),
    "select(self, state, view): return [0.0, 1.0]": r"select gives \[0.0, 1.0\]; return devices, i",
    "received(self, state, k): pass": r"received gives NoneType; return a tensor \[\d{4}",
    "local_update(self, state, k, w, grant): return ()": "local_update gives no Phase; return one",
    "demand(self, state, view, chosen): pass": "demand gives NoneType; return a Demand",
    "configure(self, state, view, grant): pass": "configure gives NoneType; return a Job",
    "local_update(self, state, k, w, grant): return (self.training(w[:5], self._all, 0, k),)": (
        r"local_update, start of Phase, gives Tensor \[5\]; return a tensor \[\d{4}"
    ),
    PHASE.format(
        "start=lambda done: None"
    ): r"start of Phase, gives NoneType; return a tensor \[P\]",
    PHASE.format("mask=None"): r"mask of Phase, gives NoneType; return a tensor \[\d{4}",
    PHASE.format("mask=lambda done: a[2][:5] > 0"): r"mask of Phase, gives Tensor \[5\]; return a",
    PHASE.format("submodel=a[2][:5] > 0"): r"submodel of Phase, gives Tensor \[5\]; return a",
    "rho_bounds(self): pass": r"rho_bounds gives NoneType; return two numbers \(low, high\)",
    "rho_bounds(self): return 0.5, 0.2": r"rho_bounds gives 0.5, 0.2; return low and high with 0 <",
    PAYLOAD.format("bits_down=-5.0"): r"s.yaml:\d+: .*whose bits_down are -5; give a finite number",
    PAYLOAD.format("bits_down=float('nan')"): "whose bits_down are nan; give a finite number of at",
    PAYLOAD.format("bits_up=float('inf')"): "whose bits_up are inf; give a finite number of at l",
    PAYLOAD.format("bits_up=-5.0"): "whose bits_up are -5; give a finite number of at least 0",
    PAYLOAD.format("bits_up=None"): "payload gives bits_up None, .*; give a number, or define pla",
    ENCODE.format("bits=-5"): "whose bits of Sent are -5; give a finite number of at least 0",
    "prunable(self): pass": r"whose prunable\(\) is no mask bool",
}


@pytest.mark.parametrize("code", ANSWERS)
def test_hooks_that_answer_with_another_kind(tmp_path, code):
    result, _ = run(tmp_path, "method", f"{CLASS}def {code}")
    assert result.exit_code == 2, result.output
    assert re.search(ANSWERS[code], result.output), result.output


DEMAND, CONFIGURE = "demand(self, state, view, chosen)", "configure(self, state, view, grant)"
AGGREGATE = "aggregate(self, state, view, updates)"
LATER = DEMAND + ": return None if {} else super().demand(state, view, chosen)"
TWO = "tiers={edges: [{}, {}], association: list, members: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]}"
SELECTION = "learning.selection=fedcs; learning.method.participants=2; budget.latency_threshold=1s"
ASYNCHRONOUS = "clock.mode=asynchronous; rounds=30"
ELSEWHERE = {  # where else the hooks are asked: keys of the scenario, the hook that answers None
    "speed tiers plan": ("clock={mode: speed-tiers, speed_tiers: 2}", DEMAND, "Demand"),
    "speed tiers add": ("clock={mode: speed-tiers, speed_tiers: 2}", AGGREGATE, "State"),
    "edges plan": (TWO, DEMAND, "Demand"),
    "edges train": (TWO, CONFIGURE, "Job"),
    "edges add": (TWO, AGGREGATE, "State"),
    "edges start": (TWO, "start(self)", "State"),
    "prices of edges": ("tiers={edges: [{}, {}], association: price}", DEMAND, "Demand"),
    "rounds": ("rounds=2", LATER.format("state is not None"), "Demand"),
    "costs of a selection": (SELECTION, LATER.format("state and len(chosen) > 2"), "Demand"),
    "one job at a time": (ASYNCHRONOUS, LATER.format("view.now_s > 0"), "Demand"),
    "buffers": ("clock={mode: buffered, buffer: 2}", AGGREGATE, "State"),
    "one process": ("learning.executor=resident", PHASE.format("mask=None"), "tensor"),
    "several threads": ("learning.executor=pool", PHASE.format("mask=None"), "tensor"),
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_hooks_that_answer_with_another_kind_wherever_they_are_asked(tmp_path, where):
    change, hook, kind = ELSEWHERE[where]
    code = f"{CLASS}def {hook}" + ("" if "return" in hook else ": pass")
    result, _ = run(tmp_path, "method", code, *change.split("; "))
    assert result.exit_code == 2, result.output
    assert re.search(rf"gives NoneType; return a {kind}", result.output), result.output


@pytest.mark.parametrize("hook", [CONFIGURE, "start(self)"])
def test_hooks_that_answer_with_another_kind_to_the_estimate_of_a_sweep(tmp_path, hook):
    code = f"{CLASS}def {hook}: pass"
    result, _ = run(tmp_path, "method", code, "rounds=2,3", "--dry-run", command="sweep")
    assert result.exit_code == 2, result.output
    assert "gives NoneType; return a " in result.output


@pytest.mark.parametrize("mask", ["list(self.everything)", "self.task.tensor(self.everything)"])
def test_a_mask_may_be_a_list_or_a_tensor(tmp_path, mask):
    code = f"{CLASS}def mask(self, state, grant): return {mask}"
    result, _ = run(tmp_path, "method", code, "rounds=1")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_that_fail(tmp_path, hook):
    code = CLASS + f"def {hook}: raise KeyError('lost')"
    result, _ = run(tmp_path, "method", code)
    assert result.exit_code == 2, result.output
    says = "s.yaml:12: learning.method.name is ./my.py:thing, which failed: .*:3: KeyError: 'lost'"
    assert re.search(rf"{says}$", result.output)


@pytest.mark.parametrize("hook", ["personal(self)", "local_update(self, state, k, w, grant)"])
def test_an_exit_within_a_method_ends_with_a_sentence_too(tmp_path, hook):
    result, _ = run(tmp_path, "method", CLASS + f"def {hook}: raise SystemExit(0)")
    assert result.exit_code == 2, result.output
    assert result.output.strip().endswith("my.py:3: SystemExit: 0")


@pytest.mark.parametrize("thing", ["partial(f, a=1)", "C()"])
def test_allocators_that_are_no_plain_functions(tmp_path, thing):
    code = "from functools import partial\ndef f(problem, a): return 1 / 0\n"
    code += "class C:\n    def __call__(self, p): return 1 / 0\n"
    result, out = run(tmp_path, "allocator", f"{code}thing = {thing}")
    assert_refused(result, out, r"my.py:[24]: ZeroDivisionError")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allocator", "method"])
def test_the_resolved_scenario_runs_again_with_the_same_bytes(tmp_path, kind):
    first, second = tmp_path / "first", tmp_path / "second"
    for scenario, out in (
        (EXAMPLES / f"own_{kind}.yaml", first),
        (first / "scenario.yaml", second),
    ):
        command = ["run", str(scenario), "--allow-code", "--quiet", "--out", str(out)]
        result = CliRunner().invoke(app, command if out is second else [*command, "rounds=1"])
        assert result.exit_code == 0, result.output
    for name in ("rounds.csv", "device_rounds.parquet", "scenario.yaml", "summary.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


NET = """
from torch import nn
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(100, 10)
    def forward(self, x):
        return self.f(x.flatten(1))
def load():
    import sklearn.datasets
    d = sklearn.datasets.load_digits()
    return d.images[:90] / 16, d.target[:90], d.images[90:] / 16, d.target[90:]
class Losses:
    def loss_db(self, time_s):
        raise KeyError("x")
    def next_change_s(self, time_s):
        return 1.0
def channel(fleet, streams):
    return Losses()
"""


def own_parts(tmp_path, text, *changes):
    code = (EXAMPLES / "own_allocator.yaml").read_text().replace("./own_allocator.py:", "")
    (tmp_path / "s.yaml").write_text(code)
    (tmp_path / "my.py").write_text(text)
    return CliRunner().invoke(app, ["run", str(tmp_path / "s.yaml"), "--allow-code", *changes])


@pytest.mark.parametrize(
    "changes", [(), ("learning.dataset=./my.py:load", "learning.partition={kind: iid}")]
)
def test_a_net_that_fails_is_named_as_in_the_scenario(tmp_path, changes):
    """Of several names of one file that is named whose code was running."""
    result = own_parts(tmp_path, NET.format(name="Net"), "learning.model=./my.py:Net", *changes)
    says = r"^command line: learning.model is ./my.py:Net, which failed: \S+my.py:8: RuntimeError"
    assert_refused(result, tmp_path / "out", says)


def test_a_channel_that_fails_later_is_named_as_in_the_scenario(tmp_path):
    loss = "network.channel.path_loss={model: code, code: './my.py:channel'}"
    result = own_parts(tmp_path, NET.format(name="Net"), loss)
    says = "path_loss.code is ./my.py:channel, which failed: .*my.py:15: KeyError: 'x'"
    assert_refused(result, tmp_path / "out", f"line: network.channel.{says}")

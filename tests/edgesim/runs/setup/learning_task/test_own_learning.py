"""Runs on a user's own data and module: by file, by code and from Python; repeated and resumed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from edgesim import load, simulate
from edgesim.errors import RunError, ScenarioError
from edgesim.runs.fingerprint import result_digest, training_digest
from edgesim.runs.run import feasibility
from edgesim.runs.setup import set_up
from edgesim.sweep.sweep_plan import plan_sweep
from fl.data.array_files import npz

YAML = """
name: own
rounds: 2
network: {bandwidth: 1 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 100 dB}}}
devices:
  - {count: 3, tx_power: 28 dBm, capability: [1, 0.5, 0.5],
     cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 5 ms}
allocation: {solver: equal}
learning: {dataset: mine.npz, partition: {kind: natural}, model: mlp, batch_size: 8,
           method: {name: fedavg, lr: 0.1}}
"""
CODE = """
import numpy as np
from torch import nn

class Net(nn.Sequential):
    def __init__(self, input_shape, classes):
        hidden = nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5)
        super().__init__(*hidden, nn.Linear(8, classes))

def load():
    import pathlib
    with np.load(pathlib.Path(__file__).parent / "mine.npz") as file:
        return dict(file)

def broken():
    return 1 / 0
"""
HEAD = "learning.classifier=[4]"
OWN_CODE = ("learning.dataset=./my.py:load", "learning.model=./my.py:Net")


def arrays():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    given = {"x_train": x[:40], "y_train": y[:40], "x_test": x[40:], "y_test": y[40:]}
    return given | {"clients_train": np.arange(40) % 3}


@pytest.fixture
def own(tmp_path):
    """The scenario of this file with some changes, beside its data and code."""
    (tmp_path / "own.yaml").write_text(YAML)
    (tmp_path / "my.py").write_text(CODE)
    (tmp_path / "mine.npz").write_bytes(npz(arrays()))
    return lambda *changes: load(tmp_path / "own.yaml", list(changes))


def tables(run):
    return run.rounds.to_csv(), run.scores.to_csv()


def test_a_file_code_and_arrays_in_memory_are_the_same_data(own):
    by_file = tables(simulate(own()))
    assert tables(simulate(own(OWN_CODE[0]), allow_code=True)) == by_file
    assert tables(simulate(own(), data=arrays())) == by_file


def test_clients_without_a_device_are_a_warning(own):
    warned = simulate(own("devices.0.count=2", "devices.0.capability=1")).summary["warnings"]
    sentence = "learning.partition: 2 of 3 clients take part, those with most samples: 1 with 13 of"
    assert any(text.startswith(sentence) for text in warned), warned
    others = simulate(own()).summary["warnings"]
    assert not any("clients" in text for text in others)


@pytest.mark.parametrize("changes", [(), ("learning.partition={kind: file, file: sub/split.csv}",)])
def test_a_run_is_done_again_from_its_folder(own, tmp_path, changes):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/split.csv").write_text("sample,device\n0,0\n1,1\n2,2\n")
    run = simulate(own(*changes), out=tmp_path / "run")
    again = simulate(load(tmp_path / "run/scenario.yaml"), out=tmp_path / "again")
    assert tables(again) == tables(run)


def test_a_run_on_arrays_keeps_them(own, tmp_path):
    run = simulate(own(), out=tmp_path / "run", data=arrays())
    assert tables(simulate(load(tmp_path / "run/scenario.yaml"))) == tables(run)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["liu", "heterofl", "spafl", "fedpm", "oort"])
def test_methods_train_a_module_with_the_same_bytes_on_any_number_of_threads(own, method):
    own_model = own(*OWN_CODE, f"learning.method={{name: {method}}}")
    first, second = (simulate(own_model, allow_code=True, processes=n) for n in (1, 3))
    assert tables(first) == tables(second)
    assert np.isfinite(first.rounds.loss).all()


@pytest.mark.slow
def test_an_interrupted_run_of_a_module_ends_with_the_same_bytes(own, tmp_path):
    whole = simulate(own(*OWN_CODE), out=tmp_path / "whole", allow_code=True)

    def stop(event):
        if event["kind"] == "round":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(own(*OWN_CODE), out=tmp_path / "cut", allow_code=True, progress=stop)
    resumed = simulate(own(*OWN_CODE), out=tmp_path / "cut", allow_code=True)
    assert tables(resumed) == tables(whole)
    names = ("rounds.csv", "model.safetensors", "my.py")
    assert all((tmp_path / f"{d}/{n}").exists() for n in names for d in ("whole", "cut"))


def test_a_module_from_python_trains_from_its_own_weights(own):
    torch.manual_seed(5)
    module = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    before = [each.clone() for each in module.parameters()]
    setup = set_up(own(), model=module)
    w = torch.cat([each.detach().flatten() for each in before])
    assert torch.equal(setup.method.start().w, w)
    run = simulate(own(), model=module)
    assert all(map(torch.equal, module.parameters(), before))
    assert run.summary["weights"]["total"] == len(w)


def test_a_stacked_executor_says_that_it_trained_the_module_by_itself(own):
    run = simulate(own(*OWN_CODE, "learning.executor=batched"), allow_code=True)
    assert "module of the user's own" in run.summary["training"]["detours"][0]


@pytest.mark.slow
def test_content_decides_the_fingerprint(own, tmp_path):
    def prints(**options):
        setup = set_up(own(), **options)
        return result_digest(setup), training_digest(setup)

    changed = arrays()
    changed["x_train"][0, 0] += 1
    assert prints() == prints()
    assert prints(data=arrays()) == prints(data=arrays())
    assert not set(prints(data=arrays())) & set(prints(data=changed))
    before = prints()
    (tmp_path / "mine.npz").write_bytes(npz(changed))
    assert not set(before) & set(prints())
    module = nn.Linear(5, 3)
    first, shared = prints(model=module)
    assert shared is None  # a module could read anything
    with torch.no_grad():
        module.weight[0, 0] += 1
    assert prints(model=module)[0] != first


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            ("learning.dataset=none.npz",),
            r"learning.dataset is none.npz, but there is no file .*none.npz; a path is relative to",
        ),
        (("learning.dataset=./my.py:broken",), r"my.py:\d+: ZeroDivisionError"),
        (("learning.dataset=./my.py:nothing",), "my.py defines no nothing"),
        (("learning.model=./my.py:load",), "model ./my.py:load is dict, no torch.nn.Module"),
        (("learning.model=./my.py:np",), "is no torch.nn.Module and makes none"),
        (("learning.model=./no.py:Net",), "there is no file .*no.py; a path is relative to the sc"),
        ((HEAD,), "learning.classifier is not read with the model mlp"),
        ((HEAD, "learning.model=Net"), 'learning.model: there is no model "Net"'),
        (
            (*OWN_CODE, "learning.classifier=[head]"),
            "learning.classifier: model ./my.py:Net has no module or parameter head",
        ),
        (("learning.classifier=4",), r"write a list of names of modules or parameters"),
        (
            ("learning.partition={kind: file, file: no.csv}",),
            r"file is no.csv, but there is no file \S*no.csv; a path is relative to the scenario",
        ),
        (("learning.model=digits-cnn",), "does not fit samples of 5 numbers; only mlp"),
        ((*OWN_CODE, "learning.method={name: depthfl}"), "depthfl does not know the blocks"),
        ((*OWN_CODE, "learning.method={name: moon}"), "moon .* model ./my.py:Net is a module of"),
        (("learning.dataset=./my.py",), "my.py is code; name its function, ./my.py:load"),
    ],
)
def test_what_is_wrong_is_one_sentence(own, changes, sentence):
    with pytest.raises((RunError, ScenarioError), match=sentence):
        simulate(own(*changes), allow_code=True)


def test_a_module_for_other_samples_is_one_sentence(own):
    sentence = (
        r"learning.model: model Linear fails on samples of \[5\]: RuntimeError: mat1 and mat2"
    )
    with pytest.raises(RunError, match=sentence):
        simulate(own(), model=nn.Linear(4, 3))


@pytest.mark.parametrize("seed", [-1, 1.5, 2**63, "1"])
def test_a_seed_that_is_none_is_one_sentence(own, seed):
    with pytest.raises(RunError, match=f"seed is {seed}; give a whole number from 0 to"):
        simulate(own(), seed=seed)


def test_a_model_that_is_none_is_named_as_it_was_given(own):
    with pytest.raises(ScenarioError, match=r"is '\./net\.py:Net', which is no torch\.nn\.Module"):
        simulate(own(), model="./net.py:Net")


def test_a_file_in_place_of_the_folder_of_data_sets_is_not_passed_over(own, tmp_path):
    with pytest.raises(RunError, match=r"mine\.npz, a file; name it as learning.dataset"):
        simulate(own(), data=tmp_path / "mine.npz")


def test_code_needs_leave(own):
    sentence = "runs code of yours; allow it with --allow-code, in Python with allow_code=True"
    for change in OWN_CODE:
        with pytest.raises(ScenarioError, match=sentence):
            simulate(own(change))


def test_what_is_no_scenario_is_one_sentence():
    sentence = r"the scenario is dict; give what edgesim\.load gives"
    for call in (simulate, feasibility):
        with pytest.raises(RunError, match=sentence):
            call({"name": "own"})


def test_the_users_list_decides_what_stays_at_a_device(own):
    """Of Net, 5 x 8 + 8 weights and biases and the norm's 16 are features: FedPer keeps 4.*."""
    changes = (*OWN_CODE, HEAD, "learning.method={name: fedper}")
    weights = simulate(own(*changes), allow_code=True).summary["weights"]
    assert weights == {"total": 48 + 16 + 27, "global": 64, "personal": 27}


@pytest.mark.parametrize("changes", [(), OWN_CODE[:1]])
def test_check_and_sweep_find_a_value_that_is_no_number(own, tmp_path, changes):
    given = arrays()
    given["x_test"][7] = np.nan
    (tmp_path / "mine.npz").write_bytes(npz(given))
    sentence = (
        r"learning.dataset: .*x_test: sample 7 holds a value that is not finite \(1 sample does"
    )
    with pytest.raises(RunError, match=sentence):
        feasibility(own(*changes), allow_code=True)
    with pytest.raises(RunError, match=sentence):
        plan_sweep(tmp_path / "own.yaml", [*changes, "seed=0,1"], allow_code=True)
    (tmp_path / "mine.npz").write_bytes(npz(arrays()))
    assert feasibility(own(*changes), allow_code=True).feasible


def test_a_method_that_shares_hardly_anything_of_a_module_says_so(own, tmp_path):
    """Liu shares the classifier, by default the last layer: 8 x 3 + 3 of 767 weights."""
    deep = "nn.Linear(input_shape[0], 50), nn.Linear(50, 8), nn.BatchNorm1d(8)"
    (tmp_path / "my.py").write_text(CODE.replace("nn.Linear(input_shape[0], 8)", deep, 1))
    liu = (*OWN_CODE, "learning.method={name: liu}", "budget.latency_threshold=1 s")
    (sentence,) = feasibility(own(*liu), allow_code=True).warnings
    assert sentence.startswith("learning.classifier: is not given, so that liu shares 27 of 767 ")
    assert "name the modules of ./my.py:Net that are the classifier" in sentence
    one = "learning.method={name: %s}"
    for changes in (["learning.classifier=[1, 6]"], [one % "fedavg"], [one % "spafl"]):
        assert not feasibility(own(*liu, *changes), allow_code=True).warnings


def test_a_module_without_flops_says_that_its_training_costs_nothing(own, tmp_path):
    scaled = """

class Scaled(nn.Module):
    def __init__(self, input_shape, classes):
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.ones(classes, *input_shape))

    def forward(self, x):
        return (x[:, None, :] * self.weight).sum(-1)
"""
    (tmp_path / "my.py").write_text("import torch\n" + CODE + scaled)
    changes = [OWN_CODE[0], "learning.model=./my.py:Scaled"]
    assert not feasibility(own(*changes), allow_code=True).warnings  # weights cost cycles
    changes.append("devices.0.cpu={frequency: 3 GHz, flops_per_cycle: 4}")
    (sentence,) = feasibility(own(*changes), allow_code=True).warnings
    assert sentence.startswith("learning.model: ./my.py:Scaled counts 0 FLOP, as only convolutions")
    assert (simulate(own(*changes), allow_code=True).device_rounds.compute_s == 0.0).all()
    changes[1] = OWN_CODE[1]
    assert not feasibility(own(*changes), allow_code=True).warnings

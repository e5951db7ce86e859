"""Scores of personalised models; static batch norm; probes and measures; a state on disk."""

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from edgesim.seeds import Seeds
from fl.data.samples import Federated
from fl.evaluation import evaluate as evaluation
from fl.evaluation import threaded_scoring as units
from fl.evaluation.evaluate import by_device, evaluate, on_whole_test_set, scored
from fl.evaluation.threaded_scoring import ScoredModel, batch_norm_statistics
from fl.method_base.method import State, bind
from fl.methods.fedavg import FedAvg
from fl.models.architectures import Architecture, build
from fl.models.batch_norm import Collected
from fl.models.layers.learned_layers import Linear, Norm
from fl.models.layers.weightless_layers import Flatten, Relu
from fl.task import LearningTask
from tests.fl.random_jobs import task_of

PARTIAL = {"personal_steps": 3, "global_steps": 3, "personal_lr": 0.2, "global_lr": 0.1}


def same(a: State, b: State) -> bool:
    arrays_a, arrays_b = a.to_arrays()[0], b.to_arrays()[0]
    return arrays_a.keys() == arrays_b.keys() and all(
        arrays_a[n].tobytes() == arrays_b[n].tobytes() for n in arrays_a
    )


@pytest.mark.slow
def test_one_pass_for_all_gives_the_numbers_of_one_by_one(bench):
    method, state = bench.play("fedavg", local_steps=20, lr=0.1)
    together = evaluate(bench.task, method, state)
    alone = bench.method(
        "fedalt", personal_part="features"
    )  # the same model, but held by each device
    personal = state.w[alone.personal_index]
    kept = State(state.g, state.w, dict.fromkeys(range(4), personal))
    apart = evaluate(bench.task, alone, kept)
    assert np.array_equal(together.accuracy, apart.accuracy)
    assert together.loss == pytest.approx(apart.loss, rel=1e-6)
    x, y = (
        torch.from_numpy(a[bench.task.data.test_index[2]])
        for a in (bench.task.data.x_test, bench.task.data.y_test)
    )
    logits = bench.task.architecture.logits(state.w, x)
    assert together.accuracy[2] == pytest.approx((logits.argmax(1) == y).double().mean().item())
    assert together.loss[2] == pytest.approx(
        torch.nn.functional.cross_entropy(logits, y).item(), rel=1e-5
    )


@pytest.mark.slow
def test_personal_models_are_tested_on_their_own_data(bench):
    method, state = bench.play(
        "fedsim", rounds=12, personal_steps=10, global_steps=10, personal_lr=0.1, global_lr=0.1
    )
    own = evaluate(bench.task, method, state).accuracy
    rotated = State(state.g, state.w, {k: state.local[(k + 1) % 4] for k in range(4)})
    assert own.mean() > evaluate(bench.task, method, rotated).accuracy.mean() + 0.1


class Own:
    """Every device has a model of its own."""

    def __init__(self, each):
        self.each = each

    def personalise(self, state, k):
        return self.each[k]

    def probes(self, state):
        return {}

    measures = probes


@pytest.mark.parametrize("held", [evaluation.STACK_BYTES, 250_000, 1])
def test_perceptrons_of_different_devices_are_scored_in_stacks(monkeypatch, held):
    """Test sets of 40, 23, 0, 31 and 1 samples, one model without numbers: as one by one, whatever
    the memory holds.

    A model takes 2 x 4,810 weights and 4 x 64 + 4 x 10 signals of a sample: 86 kB with 40 of them,
    75 kB with 31.
    """
    task = task_of("mlp", sizes=(40, 23, 8, 31, 1))
    task.data.test_index[2] = np.empty(0, dtype=np.int64)
    scale = torch.linspace(0.5, 3, 5)
    each = [
        task.initial() * s + 0.1 * torch.randn(4810, generator=torch.Generator().manual_seed(0))
        for s in scale
    ]
    each[1][:] = torch.nan
    sizes, original = [], units.score_pieces

    def counted(task, stack):
        sizes.append(len(stack))
        return original(task, stack)

    monkeypatch.setattr(evaluation, "STACK_BYTES", held)
    monkeypatch.setattr(units, "score_pieces", counted)
    scores = evaluate(task, Own(each), None)
    monkeypatch.setattr(units, "score_pieces", original)
    alone = ([ScoredModel(w, task.data.test_index[k], [k])] for k, w in enumerate(each))
    pairs = [by_device(task, values, one.devices) for one, values in scored(task, alone)]
    assert sizes == {evaluation.STACK_BYTES: [5], 250_000: [2, 3], 1: [1] * 5}[held]
    assert scores.accuracy.tolist() == pytest.approx(
        [float(a[0]) for _, a in pairs], abs=0, nan_ok=True
    )
    assert scores.loss.tolist() == pytest.approx(
        [float(loss[0]) for loss, _ in pairs], rel=1e-6, nan_ok=True
    )
    assert (
        scores.loss[1] == np.inf
        and np.isnan(scores.loss[2])
        and len(set(scores.loss[[0, 3, 4]])) == 3
    )


def test_convolutions_are_scored_in_the_order_in_which_they_are_fastest(monkeypatch):
    """In blocks the very numbers of torch's default order."""
    task = task_of("liu-cnn", shape=(1, 12, 12))
    expected = evaluate(task, Own([task.initial()] * 5), None)
    monkeypatch.setattr(
        units, "fastest_memory_format", lambda architecture, *_: (architecture, lambda x: x)
    )
    plain = evaluate(task, Own([task.initial()] * 5), None)
    assert np.array_equal(expected.loss, plain.loss) and np.array_equal(
        expected.accuracy, plain.accuracy
    )


def test_a_device_without_test_data_has_no_score(tiny_bench):
    bench = tiny_bench([Linear(1, 2)], [[1.0], [2.0]], [0, 1])
    bench.task.data.test_index[1] = np.array([], dtype=np.int64)
    method = bench.method("fedavg")
    scores = evaluate(bench.task, method, method.start())
    assert np.isfinite(scores.loss[0])
    assert np.isnan(scores.loss[1])
    assert np.isnan(scores.accuracy[1])


# --- static batch norm
# -----------------------------------------------------------------------------------------------


def test_a_shared_model_is_scored_with_the_statistics_of_all_training_data(tiny_bench):
    """Samples 1 and 3 on two devices: mean 2, unbiased variance 2, so they become -+1 / sqrt 2;
    logits (z, -z).
    """
    bench = tiny_bench([Norm(), Linear(1, 2, bias=False)], [[1.0], [3.0]], [0, 0])
    w = torch.tensor([1.0, 0.0, 1.0, -1.0])  # scale, shift, two weights
    scores = evaluate(bench.task, bench.method("fedavg"), State(0, w))
    z = 1 / sqrt(2 + 1e-5)
    assert scores.loss == pytest.approx([log(1 + exp(2 * z)), log(1 + exp(-2 * z))], rel=1e-5)
    assert scores.accuracy.tolist() == [0, 1]


def test_a_personal_model_is_scored_with_the_statistics_of_its_own_data(tiny_bench):
    """Device 1 has scale and shift of its own and one sample: variance 0, so the norm answers its
    shift.
    """
    bench = tiny_bench([Norm(), Linear(1, 2, bias=False)], [[1.0], [3.0]], [0, 0])
    alone = bench.method("fedalt", personal_part="features")
    state = State(
        0,
        torch.tensor([1.0, 0.0, 1.0, -1.0]),
        {1: torch.tensor([1.0, 0.5]), 0: torch.tensor([1.0, -0.5])},
    )
    assert evaluate(bench.task, alone, state).loss == pytest.approx(
        [log(1 + exp(1)), log(1 + exp(-1))], rel=1e-5
    )


def test_devices_with_equal_models_share_the_statistics_wherever_they_are(tiny_bench):
    """Devices 0 and 2 hold equal models in tensors of their own, and have the samples 1 and 3: the
    numbers of the test of a shared model above. Device 1 between them has another one.
    """
    bench = tiny_bench([Norm(), Linear(1, 2, bias=False)], [[1.0], [5.0], [3.0]], [0, 0, 0])
    shared, other = [1.0, 0.0, 1.0, -1.0], [1.0, 0.5, 1.0, -1.0]
    each = [torch.tensor(w) for w in (shared, other, shared)]
    z = 1 / sqrt(2 + 1e-5)
    apart = [log(1 + exp(2 * z)), log(1 + exp(-1)), log(1 + exp(-2 * z))]
    assert evaluate(bench.task, Own(each), None).loss == pytest.approx(apart, rel=1e-5)
    together = evaluate(bench.task, Own([each[0], each[1], each[0]]), None).loss
    assert together == pytest.approx(apart, rel=1e-5)


def test_statistics_are_averages_over_samples_of_the_batches_means_and_unbiased_variances():
    collected = Collected()
    for batch in ([0.0, 2.0], [3.0, 3.0, 6.0]):
        x = torch.tensor(batch, dtype=torch.float64)[:, None]
        seen = collected.begin(len(x))(x, torch.ones(1).double(), torch.zeros(1).double())
        assert seen.mean().item() == pytest.approx(0, abs=1e-9)
        assert seen.std(correction=0).item() == pytest.approx(
            1, abs=1e-4
        )  # while it collects, by the batch's own
    ((mean, variance),) = collected.frozen().statistics
    assert mean.item() == pytest.approx((2 * 1 + 3 * 4) / 5)
    assert variance.item() == pytest.approx((2 * 2 + 3 * 3) / 5)


def test_a_score_does_not_depend_on_the_other_test_samples(digits):
    """With the batch's own statistics it would. Training data run in 12 batches."""
    layers = Flatten(), Linear(64, 16, "features"), Norm(), Relu(), Linear(16, 10)
    task = LearningTask(Architecture("normed", (1, 8, 8), 10, layers), digits, 16, Seeds(0))
    w = task.initial()
    (norms,) = batch_norm_statistics(task, [on_whole_test_set(task, w)])
    x = task.test[0][:50]
    together = task.architecture.logits(w, x, norms)
    assert torch.allclose(task.architecture.logits(w, x[7:8], norms), together[7:8], atol=1e-5)
    assert not torch.allclose(task.architecture.logits(w, x[7:8]), together[7:8], atol=1e-2)
    inner = x.new_tensor(digits.x_train).flatten(1) @ task.layout.named(w)["linear1.weight"].T
    inner += task.layout.named(w)["linear1.bias"]
    ((mean, variance),) = norms.statistics
    assert torch.allclose(mean, inner.mean(0), atol=1e-5)
    assert torch.allclose(
        variance, inner.var(0), rtol=0.02
    )  # 20 % less where a batch holds one device's labels only


# --- probes, measures, text
# ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Probing(FedAvg):
    """Looks at further models and numbers."""

    def probes(self, state):
        return {"global": state.w, "nothing": torch.zeros_like(state.w)}

    def measures(self, state):
        return {"density": 0.25}


@pytest.mark.slow
def test_probes_and_measures(bench):
    _, state = bench.play("fedavg", rounds=10, local_steps=20, lr=0.1)
    scores = evaluate(bench.task, bind(Probing, bench.task, {"local_steps": 1, "lr": 0.1}), state)
    x, y = (torch.from_numpy(a) for a in (bench.task.data.x_test, bench.task.data.y_test))
    right = (bench.task.architecture.logits(state.w, x).argmax(1) == y).double().mean().item()
    assert scores.measures == {
        "accuracy global": pytest.approx(right),
        "accuracy nothing": pytest.approx(
            (y == 0).double().mean().item()
        ),  # the first class wins a tie of zeros
        "density": 0.25,
    }
    assert right > 0.3
    assert evaluate(bench.task, bench.method("fedavg"), state).measures == {}


def test_a_probe_has_the_statistics_of_all_devices(tiny_bench):
    """Samples 1 and 3 become -+1 / sqrt 2; by device 0's own data alone: 0 and large."""
    bench = tiny_bench([Norm(), Linear(1, 2, bias=False)], [[1.0], [3.0]], [1, 0])
    method = bind(Probing, bench.task, {"local_steps": 1, "lr": 0.1})
    scores = evaluate(bench.task, method, State(0, torch.tensor([1.0, 0.0, 1.0, -1.0])))
    assert scores.measures["accuracy global"] == 1


def test_texts_are_codes():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (6, 7)), rng.integers(0, 5, 6)
    each = [np.arange(3), np.arange(3, 6)]
    data = Federated(y, y, lambda: (x, x), (7,), each, each, tuple("abcde"))
    task = LearningTask(build("shakespeare-lstm", (7,), 5), data, 3, Seeds(0))
    method = bind(FedAvg, task, {"local_steps": 1, "lr": 0.1})
    scores = evaluate(task, method, method.start())
    logits = task.architecture.logits(method.start().w, torch.from_numpy(x))
    each_loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y), reduction="none")
    assert scores.loss == pytest.approx(each_loss.view(2, 3).mean(1).tolist(), rel=1e-5)


@pytest.mark.slow
def test_state_goes_to_a_file_and_back(bench, tmp_path):
    _, state = bench.play("liu", rho=0.5, **PARTIAL)
    state = State(state.g, state.w, state.local, {"scores": torch.arange(3.0)})
    arrays, record = state.to_arrays()
    save_file(arrays, tmp_path / "state.safetensors")
    back = State.from_arrays(load_file(tmp_path / "state.safetensors"), record)
    assert same(state, back)
    assert back.g == 2
    assert list(back.local) == [0, 1, 2, 3]
    assert back.memo["scores"].tolist() == [0, 1, 2]
    method = bench.method("liu", **PARTIAL)
    assert same(bench.round(method, state, 0.5), bench.round(method, back, 0.5))

"""Scores of personalised models; a state on disk."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from fl.evaluate import evaluate
from fl.method import State

PARTIAL = {"personal_steps": 3, "global_steps": 3, "personal_lr": 0.2, "global_lr": 0.1}


def same(a: State, b: State) -> bool:
    arrays_a, arrays_b = a.to_arrays()[0], b.to_arrays()[0]
    return arrays_a.keys() == arrays_b.keys() and all(arrays_a[n].tobytes() == arrays_b[n].tobytes() for n in arrays_a)


def test_one_pass_for_all_gives_the_numbers_of_one_by_one(bench):
    method, state = bench.play("fedavg", local_steps=20, lr=0.1)
    together = evaluate(bench.task, method, state)
    alone = bench.method("fedalt", personal_part="features")  # the same model, but held by each device
    personal = state.w[alone.personal_index]
    kept = State(state.g, state.w, dict.fromkeys(range(4), personal))
    apart = evaluate(bench.task, alone, kept)
    assert np.array_equal(together.accuracy, apart.accuracy)
    assert together.loss == pytest.approx(apart.loss, rel=1e-6)
    x, y = (
        torch.from_numpy(a[bench.task.data.test_index[2]]) for a in (bench.task.data.x_test, bench.task.data.y_test)
    )
    logits = bench.task.architecture.logits(state.w, x)
    assert together.accuracy[2] == pytest.approx((logits.argmax(1) == y).double().mean().item())
    assert together.loss[2] == pytest.approx(torch.nn.functional.cross_entropy(logits, y).item(), rel=1e-5)


def test_personal_models_are_tested_on_their_own_data(bench):
    method, state = bench.play("fedsim", rounds=12, personal_steps=10, global_steps=10, personal_lr=0.1, global_lr=0.1)
    own = evaluate(bench.task, method, state).accuracy
    rotated = State(state.g, state.w, {k: state.local[(k + 1) % 4] for k in range(4)})
    assert own.mean() > evaluate(bench.task, method, rotated).accuracy.mean() + 0.1


def test_a_device_without_test_data_has_no_score(tiny_bench):
    from fl.models import Linear

    bench = tiny_bench([Linear(1, 2)], [[1.0], [2.0]], [0, 1])
    bench.task.data.test_index[1] = np.array([], dtype=np.int64)
    method = bench.method("fedavg")
    scores = evaluate(bench.task, method, method.start())
    assert np.isfinite(scores.loss[0])
    assert np.isnan(scores.loss[1])
    assert np.isnan(scores.accuracy[1])


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

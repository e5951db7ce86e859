"""FedBN: normalisation layers stay where they are."""

import torch

from fl.models.layers.learned_layers import Linear, Norm

PLAIN = {"local_steps": 2, "lr": 0.1, "weighting": "uniform"}


def test_a_model_without_normalisation_is_fedavg_to_the_byte(bench):
    _, fedavg = bench.play("fedavg", **PLAIN)
    method, state = bench.play("fedbn", **PLAIN)
    assert torch.equal(state.w, fedavg.w) and method.payload(0.0) == bench.method("fedavg").payload(
        0.0
    )


def test_norms_differ_and_all_else_is_shared(tiny_bench):
    pictures = [[1.0, 2.0], [-1.0, 0.5]] * 4
    normed = tiny_bench([Linear(2, 3), Norm(), Linear(3, 2)], pictures, [0, 1] * 4, per_device=4)
    method, state = normed.play("fedbn", rounds=1, local_steps=1, lr=0.1)
    norms = torch.from_numpy(method.personal())
    a, b = (method.personalise(state, k) for k in (0, 1))
    assert torch.equal(a[~norms], b[~norms]) and not torch.equal(a[norms], b[norms])
    assert torch.equal(state.w[norms], method.start().w[norms])  # what a new device begins with
    assert method.payload(0.0).bits_up == 32 * (method.layout.size - int(norms.sum()))
    assert 0 < int(norms.sum()) < method.layout.size

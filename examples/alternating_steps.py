"""Why alternating steps need small step sizes: FedAlt, FedSim and FedAvg in plain PyTorch.

python examples/alternating_steps.py

The cell of scenarios/demo.yaml without a network: ten devices, two digits each, everybody in every
round, five steps on batches of 20. Nothing of the simulator trains here, torch.optim does.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from edgesim import load
from edgesim.runs.setup import set_up

ROUNDS, SHOWN, STEPS, BATCH = 40, (5, 10, 20, 40), 5, 20
CASES = (  # method, step size, is the input of the head normalised?
    ("FedAlt", 0.02, False),
    ("FedAlt", 0.1, False),
    ("FedSim", 0.1, False),
    ("FedAvg", 0.1, False),
    ("FedAlt", 0.1, True),
)

data = set_up(load("scenarios/demo.yaml", label="fedavg"), seed=0).task.data
x, y = torch.from_numpy(data.x_train), torch.from_numpy(data.y_train)
x_test, y_test = torch.from_numpy(data.x_test), torch.from_numpy(data.y_test)
held = [torch.from_numpy(index) for index in data.train_index]
tested = [torch.from_numpy(index) for index in data.test_index]
loss_of = nn.CrossEntropyLoss()


def convolutions() -> nn.Sequential:
    first = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(
        *first, nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )


def head(normalised: bool) -> nn.Sequential:
    scale = nn.LayerNorm(64, elementwise_affine=False) if normalised else nn.Identity()
    return nn.Sequential(scale, nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def steps(model: nn.Module, trained: list, k: int, lr: float, rng: np.random.Generator) -> None:
    """Five SGD steps on some parameters with batches of device k."""
    optimiser, order = torch.optim.SGD(trained, lr=lr), rng.permutation(held[k].numpy())
    for batch in torch.from_numpy(order[: STEPS * BATCH]).split(BATCH):
        model.zero_grad()
        loss_of(model(x[batch]), y[batch]).backward()
        optimiser.step()


def curvature(model: nn.Module, parameters: list, k: int) -> float:
    """Largest eigenvalue of the Hessian of device k's loss by some parameters: power iteration."""
    loss = loss_of(model(x[held[k]]), y[held[k]])
    gradient = flat(torch.autograd.grad(loss, parameters, create_graph=True))
    vector, value = torch.randn_like(gradient), 0.0
    for _ in range(8):
        vector = vector / vector.norm()
        turned = flat(torch.autograd.grad(gradient @ vector, parameters, retain_graph=True))
        value, vector = float(turned @ vector), turned
    return value


def flat(tensors) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


def play(method: str, lr: float, normalised: bool) -> None:
    """Play the rounds and print a line for some of them."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = nn.Sequential(convolutions(), head(normalised))
    features, shared = (list(part.parameters()) for part in model)
    own = [[p.detach().clone() for p in features] for _ in held]
    server = [p.detach().clone() for p in shared]
    for g in range(1, ROUNDS + 1):
        returned, curvatures = [], []
        for k in range(len(held)):
            put(features, own[k])
            put(shared, server)
            if method == "FedAlt":
                steps(model, features, k, lr, rng)
            if g in SHOWN:  # where the head's steps begin
                curvatures.append(lr * curvature(model, shared, k))
            steps(model, shared if method == "FedAlt" else features + shared, k, lr, rng)
            own[k] = [p.detach().clone() for p in features]
            returned.append([p.detach().clone() for p in shared])
        server = mean(returned)
        if method == "FedAvg":
            own = [mean(own)] * len(held)
        if g in SHOWN:
            report(method, lr, normalised, g, model, own, server, curvatures)


def report(method, lr, normalised, g, model, own, server, curvatures) -> None:
    """One line: accuracy, norm of the features, units that never fire, step size x curvature."""
    hits, norms, silent = [], [], []
    for k in range(len(held)):
        put(list(model[0].parameters()), own[k])
        put(list(model[1].parameters()), server)
        with torch.no_grad():
            right = model(x_test[tested[k]]).argmax(1) == y_test[tested[k]]
            hits.append(right.float().mean().item())
            seen = model[0](x[held[k]])
            norms.append(seen.norm(dim=1).mean().item())
            silent.append((model[1][:3](seen) <= 0).all(0).float().mean().item())
    name = f"{method}{', normalised' if normalised else ''}"
    shown = f"{100 * np.mean(hits):7.1f} {np.mean(norms):9.1f} {100 * np.mean(silent):9.0f}"
    print(f"{name:18} {lr:5} {g:6} {shown} {np.median(curvatures):12.2f}", flush=True)


def put(parameters: list, values: list) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.data.copy_(value)


def mean(each: list) -> list:
    return [torch.stack(values).mean(0) for values in zip(*each, strict=True)]


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("method                lr  round  acc. %  features  silent %  lr*curvature")
    for case in CASES:
        play(*case)

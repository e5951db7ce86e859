"""The rounds of benchmarks/training.py in Flower's simulation; runs in an environment of its own
(README.md).

    PYTHON benchmarks/peers/peer_flower.py '{"layers": [...], "input": [1, 28, 28], "devices": 100,
        "participants": 10, "steps": 27, "batch": 20, "rounds": 4, "cores": 2, "lr": 0.01}'

The last line that it prints is a list of seconds, one per round; the first round, which starts
Ray's workers, is left out. Neither edgesim nor anything else of this repository is needed.
"""

import json
import sys
import time
from collections.abc import Callable

import torch
from flwr.client import ClientApp, NumPyClient
from flwr.common import Context, ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn
from torch.nn.functional import cross_entropy

WORK = json.loads(sys.argv[1])
DATA: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # of the devices that this worker has met
BEGAN: list[float] = []


def model() -> nn.Sequential:
    """conv [in, out, side, padding, bias] | linear [in, out, bias] | pool | relu | flatten."""
    made: dict[str, Callable[..., nn.Module]] = {
        "conv": lambda i, o, side, padding, bias: nn.Conv2d(i, o, side, padding=padding, bias=bias),
        "linear": lambda i, o, bias: nn.Linear(i, o, bias=bias),
        "pool": lambda: nn.MaxPool2d(2),
        "relu": nn.ReLU,
        "flatten": nn.Flatten,
    }
    return nn.Sequential(*(made[kind](*sizes) for kind, *sizes in WORK["layers"]))


def data(k: int) -> tuple[torch.Tensor, torch.Tensor]:
    if k not in DATA:
        count, rng = WORK["steps"] * WORK["batch"], torch.Generator().manual_seed(k)
        DATA[k] = (
            torch.rand(count, *WORK["input"], generator=rng),
            torch.randint(0, 10, (count,), generator=rng),
        )
    return DATA[k]


class Client(NumPyClient):
    def __init__(self, k: int) -> None:
        torch.set_num_threads(1)
        self.k, self.model = k, model()

    def fit(self, parameters, config):
        with torch.no_grad():
            for target, value in zip(self.model.parameters(), parameters, strict=True):
                target.copy_(torch.from_numpy(value))
        optimiser = torch.optim.SGD(self.model.parameters(), lr=WORK["lr"])
        x, y = data(self.k)
        for chosen in torch.randperm(len(x)).split(WORK["batch"]):
            optimiser.zero_grad()
            cross_entropy(self.model(x[chosen]), y[chosen]).backward()
            optimiser.step()
        return [value.detach().numpy() for value in self.model.parameters()], len(x), {}


class Timed(FedAvg):
    """FedAvg that notes when a round begins."""

    def configure_fit(self, *args, **kwargs):
        BEGAN.append(time.perf_counter())
        return super().configure_fit(*args, **kwargs)

    def aggregate_fit(self, *args, **kwargs):
        result = super().aggregate_fit(*args, **kwargs)
        if args[2] or not args[1]:
            raise RuntimeError(f"{len(args[2])} clients failed")
        BEGAN.append(time.perf_counter())
        return result


def server(context: Context) -> ServerAppComponents:
    devices, participants = WORK["devices"], WORK["participants"]
    strategy = Timed(
        fraction_fit=participants / devices,
        min_fit_clients=participants,
        min_available_clients=devices,
        fraction_evaluate=0.0,
        initial_parameters=ndarrays_to_parameters(
            [value.detach().numpy() for value in model().parameters()]
        ),
    )
    return ServerAppComponents(
        strategy=strategy, config=ServerConfig(num_rounds=WORK["rounds"] + 1)
    )


if __name__ == "__main__":
    run_simulation(
        ServerApp(server_fn=server),
        ClientApp(
            client_fn=lambda context: Client(int(context.node_config["partition-id"])).to_client()
        ),
        num_supernodes=WORK["devices"],
        backend_config={
            "client_resources": {"num_cpus": 1},
            "init_args": {"num_cpus": WORK["cores"]},
        },
    )
    print(json.dumps([end - begin for begin, end in zip(BEGAN[2::2], BEGAN[3::2], strict=True)]))

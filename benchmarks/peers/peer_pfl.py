"""The rounds of benchmarks/training.py in pfl-research; runs in an environment of its own
(README.md).

    PYTHON benchmarks/peers/peer_pfl.py '{"layers": [...], "input": [1, 28, 28], "devices": 100,
        "participants": 10, "steps": 27, "batch": 20, "rounds": 4, "cores": 2, "lr": 0.01}'

Started as pfl's guide to distributed simulations says: once per core, each with its rank and the
addresses of all in the environment; torch has one thread in each. The last line printed is a list
of seconds, one per round; the first round, in which the processes meet and pfl evaluates, is left
out. Nothing of this repository is needed.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise

WORK = json.loads(sys.argv[1])
RANK, ADDRESSES = "PFL_WORKER_RANK", "PFL_WORKER_ADDRESSES"


def start_others() -> list[subprocess.Popen]:
    """This script again for every further core; pfl reads the environment as soon as it is
    imported.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    os.environ |= {
        RANK: "0",
        ADDRESSES: ",".join(f"localhost:{port + k}" for k in range(WORK["cores"])),
    }
    return [
        subprocess.Popen(
            [sys.executable, *sys.argv],
            env=os.environ | {RANK: str(rank)},
            stdout=subprocess.DEVNULL,
        )
        for rank in range(1, WORK["cores"])
    ]


OTHERS = [] if RANK in os.environ else start_others()

import torch  # noqa: E402
from pfl.aggregate.simulate import SimulatedBackend  # noqa: E402
from pfl.algorithm.base import NNAlgorithmParams  # noqa: E402
from pfl.algorithm.federated_averaging import FederatedAveraging  # noqa: E402
from pfl.callback.base import TrainingProcessCallback  # noqa: E402
from pfl.data.federated_dataset import FederatedDataset  # noqa: E402
from pfl.data.pytorch import PyTorchTensorDataset  # noqa: E402
from pfl.data.sampling import get_user_sampler  # noqa: E402
from pfl.hyperparam import NNTrainHyperParams  # noqa: E402
from pfl.metrics import Metrics, Weighted  # noqa: E402
from pfl.model.pytorch import PyTorchModel  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402


class Net(nn.Sequential):
    """conv [in, out, side, padding, bias] | linear [in, out, bias] | pool | relu | flatten, and
    what pfl asks for.
    """

    def __init__(self) -> None:
        made: dict[str, Callable[..., nn.Module]] = {
            "conv": lambda i, o, side, padding, bias: nn.Conv2d(
                i, o, side, padding=padding, bias=bias
            ),
            "linear": lambda i, o, bias: nn.Linear(i, o, bias=bias),
            "pool": lambda: nn.MaxPool2d(2),
            "relu": nn.ReLU,
            "flatten": nn.Flatten,
        }
        super().__init__(*(made[kind](*sizes) for kind, *sizes in WORK["layers"]))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(self(x), y)

    @torch.no_grad()
    def metrics(self, x: Tensor, y: Tensor) -> dict:
        return {"loss": Weighted(self.loss(x, y).item() * len(y), len(y))}


class Clock(TrainingProcessCallback):
    """Notes when a round ends."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        self.ends.append(time.perf_counter())
        return False, Metrics()


def users() -> FederatedDataset:
    """Every device has what its steps use once, in a new order whenever it takes part."""
    count, rng = WORK["steps"] * WORK["batch"], torch.Generator().manual_seed(0)
    x = torch.rand(WORK["devices"], count, *WORK["input"], generator=rng)
    y = torch.randint(0, 10, (WORK["devices"], count), generator=rng)

    def dataset(k: int) -> PyTorchTensorDataset:
        order = torch.randperm(count)
        return PyTorchTensorDataset((x[k][order], y[k][order]), user_id=str(k))

    return FederatedDataset(dataset, get_user_sampler("minimize_reuse", range(WORK["devices"])))


def main() -> list[float]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net, data, clock = Net(), users(), Clock()
    played = WORK["rounds"] + 1
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=played,
            evaluation_frequency=played,
            train_cohort_size=WORK["participants"],
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0)),
        NNTrainHyperParams(
            local_batch_size=WORK["batch"], local_num_epochs=1, local_learning_rate=WORK["lr"]
        ),
        callbacks=[clock],
    )
    return [end - begin for begin, end in pairwise(clock.ends)]


if __name__ == "__main__":
    seconds = main()
    if any(other.wait() for other in OTHERS):
        raise SystemExit("a process of pfl failed")
    print(json.dumps(seconds))

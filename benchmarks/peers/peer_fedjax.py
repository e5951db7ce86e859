"""The rounds of benchmarks/training.py in FedJAX; runs in an environment of its own (README.md).

    PYTHON benchmarks/peers/peer_fedjax.py '{"layers": [...], "input": [1, 28, 28], "devices": 100,
        "participants": 10, "steps": 27, "batch": 20, "rounds": 4, "cores": 2, "lr": 0.01}'

FedJAX's own federated averaging and sampler, its jit backend with as many threads as XLA takes;
pictures have their channels last, as JAX has them. The last line printed is a list of seconds, one
per round; the first round, in which everything is compiled, is left out. Nothing of this
repository is needed.
"""

import json
import sys
import time
from itertools import pairwise

import fedjax
import haiku as hk
import jax
import numpy as np

WORK = json.loads(sys.argv[1])
INPUT: list[int] = WORK["input"]
SHAPE = (*INPUT[1:], INPUT[0]) if len(INPUT) == 3 else tuple(INPUT)


def forward(batch: dict) -> jax.Array:
    """conv [in, out, side, padding, bias] | linear [in, out, bias] | pool | relu | flatten."""
    made = {
        "conv": lambda _, o, side, padding, bias: hk.Conv2D(
            o, side, padding=[(padding, padding)] * 2, with_bias=bias
        ),
        "linear": lambda _, o, bias: hk.Linear(o, with_bias=bias),
        "pool": lambda: hk.MaxPool(2, 2, "VALID"),
        "relu": lambda: jax.nn.relu,
        "flatten": hk.Flatten,
    }
    return hk.Sequential([made[kind](*sizes) for kind, *sizes in WORK["layers"]])(batch["x"])


def data() -> fedjax.InMemoryFederatedData:
    """Every device has what its steps use once."""
    count, rng = WORK["steps"] * WORK["batch"], np.random.default_rng(0)
    return fedjax.InMemoryFederatedData(
        {
            k: {
                "x": rng.random((count, *SHAPE), dtype=np.float32),
                "y": rng.integers(0, 10, count, dtype=np.int32),
            }
            for k in range(WORK["devices"])
        }
    )


def loss(batch: dict, predicted: jax.Array) -> jax.Array:
    return fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], predicted)


def main() -> list[float]:
    sample = {"x": np.zeros((1, *SHAPE), np.float32)}
    model = fedjax.create_model_from_haiku(hk.transform(forward), sample, loss)
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        fedjax.optimizers.sgd(WORK["lr"]),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=WORK["batch"], num_epochs=1),
    )
    sampler = fedjax.client_samplers.UniformGetClientSampler(data(), WORK["participants"], seed=0)
    state = algorithm.init(model.init(jax.random.PRNGKey(0)))
    ends = []
    for _ in range(WORK["rounds"] + 1):
        state, _ = algorithm.apply(state, sampler.sample())
        jax.block_until_ready(state.params)
        ends.append(time.perf_counter())
    return [end - begin for begin, end in pairwise(ends)]


if __name__ == "__main__":
    print(json.dumps(main()))

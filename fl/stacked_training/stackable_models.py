"""Which models are trained as stacks without autograd; known before torch is loaded."""

from __future__ import annotations

from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten, MaxPool, Relu
from fl.task import LearningTask

# Multiply-adds per sample up to which a stack is faster than one by one, single models aside:
# benchmarks/training.py has 4.8 times with 28 thousand and 1.5 with 480 thousand on one thread.
SMALL_MACS = 1e5


def is_perceptron(architecture: Architecture) -> bool:
    """Are there only dense layers and ReLU?"""
    return architecture.in_layers and all(
        isinstance(layer, Flatten | Linear | Relu) for layer in architecture.layers
    )


def is_plain_cnn(architecture: Architecture) -> bool:
    """Are there only convolutions of stride 1, pools, ReLU and dense layers?"""
    return (
        architecture.in_layers
        and all(
            isinstance(layer, Conv | Flatten | Linear | MaxPool | Relu)
            and getattr(layer, "stride", 1) == 1
            for layer in architecture.layers
        )
        and isinstance(architecture.layers[0], Conv)
    )


def is_small_cnn(architecture: Architecture) -> bool:
    """Is it a plain CNN with little work?"""
    return is_plain_cnn(architecture) and sum(architecture.macs.values()) <= SMALL_MACS


def why_never_stacked(task: LearningTask) -> str | None:
    """Why no job of a task can be part of a stack; None where some may."""
    if not task.architecture.in_layers:
        return "the model is a module of the user's own"
    if task.data.at_every_step:
        return "every step of a text has a label of its own"
    if not task.objective.plain:
        return "the loss is not cross entropy"
    return None

"""How an executor takes sums, which decides the last bits; known before torch is loaded."""

from __future__ import annotations

from fl.stacked_training.stackable_models import is_perceptron, is_small_cnn, why_never_stacked
from fl.task import LearningTask


def arithmetic(task: LearningTask, name: str = "auto") -> str:
    """ "stacked" or "one by one": what of an executor's name decides the last bits of a result."""
    if why_never_stacked(task):  # also where the name asks for it
        return "one by one"
    model = task.architecture
    # Stacks of perceptrons and small CNNs need no autograd; others are faster on accelerators only.
    by_rule = task.device != "cpu" or is_perceptron(model) or is_small_cnn(model)
    stacked = name == "batched" or (name in ("auto", "dask") and by_rule)
    return "stacked" if stacked else "one by one"

"""How jobs and results travel between processes that both have the task.

What both sides have goes by its name.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch

from fl.contracts import Array
from fl.data.samples import Federated
from fl.task import LearningTask


def without_caches(task: LearningTask) -> LearningTask:
    """The same task with its images read, and nothing that follows from it."""
    data = task.data
    if isinstance(data, Federated):
        images = data.x_train, data.x_test
        data = replace(data, images=lambda: images)
    return replace(task, data=data)


def shared_objects(task: LearningTask) -> dict[str, Any]:
    """What of a task both sides have, by the names that travel in its place."""
    images, labels = task.train
    return {
        "task": task,
        "architecture": task.architecture,
        "data": task.data,
        "y_train": task.data.y_train,
        "y_test": task.data.y_test,
        "images": images,
        "labels": labels,
    }


def packed(content: Any, shared: Mapping[str, Any]) -> bytes:
    """Pickled, functions within functions included; tensors as arrays of their own values."""
    from cloudpickle import CloudPickler

    names = {id(each): name for name, each in shared.items()}

    class Pickler(CloudPickler):
        def persistent_id(self, each: Any) -> str | None:
            return names.get(id(each))

        def reducer_override(self, each: Any) -> Any:
            if type(each) is torch.Tensor and each.device.type == "cpu":
                # A view would take all of its storage along.
                values = each.detach().contiguous().numpy()
                return _tensor, (values.copy() if values.base is not None else values,)
            if isinstance(each, _CACHED) and "<locals>" in each.__qualname__:
                return _cached, (each.__wrapped__, each.cache_parameters())
            return super().reducer_override(each)

    file = io.BytesIO()
    Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(content)
    return file.getvalue()


def unpacked(content: bytes, shared: Mapping[str, Any]) -> Any:
    """What `packed` was given, with this side's objects for the names."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Any:
            return shared[name]

    return Unpickler(io.BytesIO(content)).load()


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(values)


_CACHED = type(lru_cache(len))  # of functions with `functools.lru_cache`, which pickle by name only


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return lru_cache(**parameters)(function)

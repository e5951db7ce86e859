"""Training and evaluation of other runs, used again where they are provably the same.

A method's `configure` is a pure function of its state, a view and a grant, and is given a view and
a grant that record which of their fields it reads. A job is therefore determined by the learning
(data, model, method, seed, code), the state, the device, the round, and the names and values of
those fields; its result is determined by the job. Runs that differ in none of these, such as FedAvg
under another bandwidth on the synchronous clock, train once. A method that reads view.rate_bps gets
jobs that differ with the rate, and no list of such methods has to be kept.

The jobs that are trained together are found as a whole or not at all. Fields that are read only
while a job trains raise `LateReadError`; such jobs are trained and not stored. The state counts in
its form on disk, which is all that a resumed run has. Runs with a user's own code share nothing:
that code could read anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import numpy as np

from fl.contracts import Array, Grant, Job, Scores, State, Tensor, Trained, View
from fl.training_cache.access_tracking import LateReadError, Readings, tracked
from fl.training_cache.array_store import ArrayStore


@dataclass(frozen=True)
class KeyedJob(Job):
    """A job with a digest of all that its result depends on."""

    key: str = ""
    readings: Readings = field(default_factory=Readings)


class TrainingCache:
    """What one run shares with others of the same learning.

    Args:
        store: where results are kept.
        identity: digest of all that the learning depends on beside states, views and grants.
        tensor: numpy array -> tensor on the device of the task.
    """

    def __init__(self, store: ArrayStore, identity: str, tensor: Callable[[Array], Tensor]) -> None:
        self.store, self.identity, self.tensor = store, identity, tensor
        self.taken, self.made = 0, 0  # passes found in the store, and passes trained
        # Every job of a round asks for the digest of the same state.
        self.state_digest = lru_cache(maxsize=1)(state_digest)

    def key(self, *parts: Any) -> str:
        return hashlib.sha256("\n".join(map(str, (self.identity, *parts))).encode()).hexdigest()

    def scores(self, state: State, evaluate: Callable[[State], Scores]) -> Scores:
        """``evaluate(state)``, or its result in another run."""
        key = self.key("scores", self.state_digest(state))
        with self.store.making(key):
            found = self.store.get(key)
            if found is None:
                scores = evaluate(state)
                numbers = np.array([*scores.measures.values()], dtype=float)
                arrays = {"loss": scores.loss, "accuracy": scores.accuracy, "measures": numbers}
                self.store.put(key, arrays, list(scores.measures))
                return scores
        arrays, names = found
        measures = dict(zip(names, arrays["measures"].tolist(), strict=True))
        return Scores(arrays["loss"], arrays["accuracy"], measures)


class KeyingMethod:
    """A method with all its own answers, whose jobs are keyed."""

    def __init__(self, method: Any, cache: TrainingCache) -> None:
        self._method, self._cache = method, cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        readings = Readings()
        job = self._method.configure(state, tracked(view, readings), tracked(grant, readings))
        readings.closed = True
        read = sorted((name, content(value)) for name, value in readings.values.items())
        key = self._cache.key("job", self._cache.state_digest(state), job.device, job.g, *read)
        own = {each.name: getattr(job, each.name) for each in fields(Job)}
        return KeyedJob(**own, key=key, readings=readings)


def pass_key(job: KeyedJob) -> str:
    """The key of a job, which a repetition from the same version does not share."""
    return f"{job.key}/{job.again}" if job.again else job.key


class CachingExecutor:
    """An `Executor` that trains only what no run has trained."""

    def __init__(self, inner: Any, cache: TrainingCache) -> None:
        self.inner, self.cache = inner, cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        keyed = [job for job in jobs if isinstance(job, KeyedJob)]
        if not keyed or len(keyed) < len(jobs):
            return self.inner.run(jobs)
        key = self.cache.key("pass", *(pass_key(job) for job in keyed))
        with self.cache.store.making(key):
            found = self.cache.store.get(key)
            if found is None:
                return self._train(key, keyed)
        arrays, fallbacks = found
        self.fallbacks.merge(fallbacks)
        self.cache.taken += 1
        return unpacked(arrays, len(jobs), self.cache.tensor)

    def _train(self, key: str, jobs: Sequence[KeyedJob]) -> list[Trained]:
        """Trains jobs and stores the results, unless the training read more than the key covers."""
        before = self.fallbacks.take()
        try:
            results = self.inner.run(jobs)
            self.cache.store.put(key, packed(results), made := self.fallbacks.take())
        except LateReadError:
            self.fallbacks.take()
            for job in jobs:
                job.readings.closed = False
            results, made = self.inner.run(jobs), self.fallbacks.take()
        self.fallbacks.merge(before)
        self.fallbacks.merge(made)
        self.cache.made += 1
        return results


def state_digest(state: State) -> str:
    """SHA-256 of a state as a checkpoint holds it."""
    arrays, record = state.to_arrays()
    parts = [json.dumps(record, sort_keys=True)]
    parts += [f"{name} {content(array)}" for name, array in arrays.items()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def content(value: Any) -> str:
    """A text that differs wherever the values differ."""
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
        return f"{value.dtype} {value.shape} {digest}"
    return f"{type(value).__name__} {value!r}"


def packed(results: Sequence[Trained]) -> dict[str, Array]:
    """Results as arrays by name."""
    arrays = {
        name: np.array([getattr(one, name) for one in results]) for name in ("loss", "accuracy")
    }
    for i, one in enumerate(results):
        tensors = {"w": one.w, "mask": one.mask, "collected": one.collected}
        arrays |= {
            f"{i}/{name}": t.detach().cpu().numpy() for name, t in tensors.items() if t is not None
        }
    return arrays


def unpacked(
    arrays: dict[str, Array], count: int, tensor: Callable[[Array], Tensor]
) -> list[Trained]:
    """The results that `packed` was given."""
    # Copies in torch's own memory: the alignment of a tensor can decide the last bits of a sum.
    own = {name: tensor(array).clone() for name, array in arrays.items() if "/" in name}
    loss, accuracy = arrays["loss"].tolist(), arrays["accuracy"].tolist()
    return [
        Trained(own[f"{i}/w"], own[f"{i}/mask"], loss[i], accuracy[i], own.get(f"{i}/collected"))
        for i in range(count)
    ]

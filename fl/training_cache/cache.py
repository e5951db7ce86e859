"""Training and evaluation that another run has done already, taken from it where they are provably the same.

A method's `configure` is a pure function of its state, a view and a grant. It is handed a view and a grant that note
which of their fields it reads. So an order is determined by the learning (data, model, method, seed, code), by the
state, by device and round, and by the names and values of those fields; a result is determined by its order. Runs that
differ in nothing of this, such as FedAvg under another bandwidth on the synchronous clock, train once. A method that
reads view.rate_bps makes orders that differ with the rate, without anybody keeping a list of such methods.

A pass is taken over only as a whole, in its order. What an order reads later, while it trains, is seen too
(`LateRead`); such a pass is trained and not kept. The state counts in its form on disk, which is all that a resumed run
has. Code of the user's own is never reused: it could read anything.

Measured (docs/sweeps.md): FedAvg on the digits under 4 thresholds and 2 bands, 20 rounds, one worker. A point that
takes over all passes needs 0.10 s instead of 1.65 s; the whole command 6.9 s instead of 17.9 s, 4.3 s of it to start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fl.contracts import Grant, Job, Scores, State, Tensor, Trained, View
from fl.training_cache.access_tracking import LateRead, Reading, watched
from fl.training_cache.array_store import Store

Array = np.ndarray


@dataclass(frozen=True)
class Order(Job):
    """A job with what determines its result."""

    key: str = ""
    reading: Reading | None = None


class Reuse:
    """What one run gives to others of its kind, and takes from them.

    Args:
        identity: says everything that the learning depends on beside states, views and grants.
        tensor: numpy array -> tensor where the task computes.
    """

    def __init__(self, store: Store, identity: str, tensor: Callable[[Array], Tensor]) -> None:
        self.store, self.identity, self.tensor = store, identity, tensor
        self.taken, self.made = 0, 0  # passes
        self._digested: tuple[Any, str] = (None, "")

    def watch(self, method: Any) -> Watched:
        return Watched(method, self)

    def share(self, executor: Any) -> Sharing:
        return Sharing(executor, self)

    def order(self, job: Job, state: State, reading: Reading) -> Order:
        """The job, keyed by all that it can depend on."""
        reading.closed = True
        read = sorted(
            (kind, name, described(value)) for (kind, name), value in reading.values.items()
        )
        key = self.key("order", self.state_key(state), job.device, job.g, *read)
        return Order(
            **{each.name: getattr(job, each.name) for each in fields(Job)}, key=key, reading=reading
        )

    def scores(self, state: State, evaluate: Callable[[State], Scores]) -> Scores:
        """What ``evaluate`` says of a state, asked once for all runs."""
        key = self.key("scores", self.state_key(state))
        with self.store.making(key):
            found = self.store.get(key)
            if found is None:
                scores = evaluate(state)
                numbers = np.array([*scores.measures.values()], dtype=float)
                arrays = {"loss": scores.loss, "accuracy": scores.accuracy, "measures": numbers}
                self.store.put(key, arrays, list(scores.measures))
                return scores
        arrays, names = found
        return Scores(
            arrays["loss"],
            arrays["accuracy"],
            dict(zip(names, arrays["measures"].tolist(), strict=True)),
        )

    def state_key(self, state: State) -> str:
        """Digest of a state as a checkpoint holds it."""
        if state is not self._digested[0]:
            arrays, record = state.to_arrays()
            parts = [
                json.dumps(record, sort_keys=True),
                *(f"{name} {described(a)}" for name, a in arrays.items()),
            ]
            self._digested = state, hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return self._digested[1]

    def key(self, *parts: Any) -> str:
        return hashlib.sha256("\n".join(map(str, (self.identity, *parts))).encode()).hexdigest()


class Watched:
    """A method that is the same in everything, and whose orders are keyed."""

    def __init__(self, method: Any, reuse: Reuse) -> None:
        self._method, self._reuse = method, reuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def configure(self, state: State, view: View, grant: Grant) -> Job:
        reading = Reading()
        job = self._method.configure(state, watched(view, reading), watched(grant, reading))
        return self._reuse.order(job, state, reading)


class Sharing:
    """An executor that trains only passes that nobody has trained yet (`fl.executors.trainer.Executor`)."""

    def __init__(self, inner: Any, reuse: Reuse) -> None:
        self.inner, self.reuse = inner, reuse

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def notes(self) -> Any:
        return self.inner.notes

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        if not jobs or not all(isinstance(job, Order) for job in jobs):
            return self.inner.run(jobs)
        store, key = self.reuse.store, self.reuse.key("pass", *(job.key for job in jobs))
        with store.making(key):
            found = store.get(key)
            if found is None:
                return self._train(key, jobs)
        arrays, notes = found
        self.notes.merge(notes)
        self.reuse.taken += 1
        return unpacked(arrays, len(jobs), self.reuse.tensor)

    def end(self) -> None:
        self.inner.end()

    def _train(self, key: str, jobs: Sequence[Order]) -> list[Trained]:
        """Trains a pass and keeps its results, unless the training looked at more than its key tells."""
        before = self.notes.take()
        try:
            results = self.inner.run(jobs)
            self.reuse.store.put(key, packed(results), made := self.notes.take())
        except LateRead:
            self.notes.take()
            for job in jobs:
                job.reading.closed = False
            results, made = self.inner.run(jobs), self.notes.take()
        self.notes.merge(before)
        self.notes.merge(made)
        self.reuse.made += 1
        return results


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
    """Results in memory of torch's own: where it begins can decide the last bits of what is computed from them."""
    own = {name: tensor(array).clone() for name, array in arrays.items() if "/" in name}
    loss, accuracy = arrays["loss"].tolist(), arrays["accuracy"].tolist()
    return [
        Trained(own[f"{i}/w"], own[f"{i}/mask"], loss[i], accuracy[i], own.get(f"{i}/collected"))
        for i in range(count)
    ]


def described(value: Any) -> str:
    """A value such that different ones never look alike."""
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        return f"{value.dtype} {value.shape} {hashlib.sha256(content).hexdigest()}"
    return f"{type(value).__name__} {value!r}"

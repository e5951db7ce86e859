"""Updates that started from an older version of the model, as the server uses them now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from fl.contracts import Job, Stage, Tensor, Trained, Update


@dataclass(frozen=True, eq=False)
class WeightedUpdate:
    """An update with the weight that staleness leaves of it (`fl.contracts.Update`)."""

    update: Update
    weight: float

    @property
    def job(self) -> Job:
        return self.update.job

    @property
    def is_trained(self) -> bool:
        return self.update.is_trained

    def result(self) -> Trained:
        return self.update.result()

    def stages(self) -> tuple[Stage, ...]:
        return self.update.stages()

    def bits_up(self) -> float:
        return self.update.bits_up()

    def truncate(self, fraction: float) -> int:
        return self.update.truncate(fraction)

    def abort(self) -> None:
        self.update.abort()


@dataclass(frozen=True, eq=False)
class MovedUpdate(WeightedUpdate):
    """An update whose change is damped and applied to the model of now.

    Its result is now + weight (w - base) where the model is shared, in double precision, so that a
    mean over several of them is the damped mean of changes: Nguyen et al., AISTATS 2022, Algorithm
    1. A weight below 1 damps also where all updates are equally stale.

    Args:
        now: the server's model [P].
        base: the model that the change is measured from [P].
        shared: weights that travel, bool [P]; the others are the device's own.
    """

    now: Tensor
    base: Tensor
    shared: Tensor

    def result(self) -> Trained:
        return self._moved

    def moved(self, w: Tensor) -> Tensor:
        """Weights w [P] of the device as they are used now."""
        change = self.weight * (w.double() - self.base.double())
        return (self.now.double() + change).to(w.dtype).where(self.shared, w)

    @cached_property
    def _moved(self) -> Trained:
        trained = self.update.result()
        return replace(trained, w=self.moved(trained.w))


def as_it_came(update: Update) -> Update:
    """The update of the device, neither weighted nor moved."""
    while isinstance(update, WeightedUpdate):
        update = update.update
    return update


def device_change(update: Update) -> Tensor:
    """y - x of the device's own training [P], whatever staleness leaves of the update.

    A method whose devices remember their change takes this one at the server too: otherwise the
    server's memory is not the mean of theirs.

    Args:
        update: As it is used; its job begins with x, the model downloaded [P].
    """
    own = as_it_came(update)
    return own.result().w - own.job.phases[0].start


def undamped(update: Update, now: Tensor, shared: Tensor) -> MovedUpdate:
    """The whole `device_change`, applied to the model of now.

    Args:
        update: As it is used.
        now: the server's model [P].
        shared: weights that travel, bool [P].
    """
    own = as_it_came(update)
    return MovedUpdate(own, 1.0, now, own.job.phases[0].start, shared)

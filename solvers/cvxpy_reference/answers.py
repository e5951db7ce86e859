"""What all statements need: the devices with a choice, and the search for a certified answer.

A statement is solved under one setting of Clarabel after the other until the certificate accepts
the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from solvers.arrays import Array, Mask
from solvers.problem import PruningProblem
from solvers.solution import Solution, UncertifiedError

GOOD = 1e-9  # gap that ends the search
NONE = 1e-60  # stands for zero, which has no logarithm
NEXT_TO_NOTHING = 1e-12  # of a share, or of a deadline
Answers = Iterator[tuple[Array, float]]


def best_certified(
    method: str, exact: str, answers: Iterable[Any], certified: Callable[..., Solution]
) -> Solution:
    """The first answer of which the gap is `GOOD`, else the best of those that are certified.

    Raises:
        UncertifiedError: names the method and the exact one to use.
    """
    best: Solution | None = None
    for answer in answers:
        try:
            found = certified(*answer)
        except UncertifiedError:
            continue
        if best is None or found.certificate.gap < best.certificate.gap:
            best = found
        if best.certificate.gap <= GOOD:
            break
    if best is None:
        raise UncertifiedError(
            f"{method} finds no answer that its certificate accepts, as may be where the inputs of "
            f"devices lie many decades apart; use {exact}."
        )
    return best


class Choice:
    """The devices whose shares are to be chosen, in the band that the least shares of others leave.

    Args:
        problem: K devices.
        on: which of them, N: bool [K].
        low: least shares [K].
        cap: largest shares [K].
    """

    def __init__(self, problem: PruningProblem, on: Mask, low: Array, cap: Array) -> None:
        rows = {field.name: getattr(problem, field.name) for field in fields(problem)}
        rows = {name: row[on] for name, row in rows.items() if isinstance(row, np.ndarray)}
        self.problem, self.low, self.cap = replace(problem, **rows), low[on], cap[on]
        self.band = 1.0 - float(low[~on].sum())
        self.size = int(on.sum()), problem.snr is not None

    def filled(self, share: Array) -> Array:
        """Shares [N] between their bounds, what is above the least ones scaled to fill the band."""
        room, left = self.cap - self.low, self.band - float(self.low.sum())
        extra = np.clip(share - self.low, 0.0, room)
        for _ in range(4):
            free = extra < room
            times = (left - float(extra[~free].sum())) / max(float(extra[free].sum()), 1e-300)
            extra = np.where(free, np.clip(extra * times, 0.0, room), extra)
        return self.low + extra

    def logarithms(self, **values: Array) -> dict[str, Any]:
        """Parameters of a geometric program: those of the band, of the rates, and these [N]."""
        values |= {"band": np.asarray(self.band)}
        if (snr := self.problem.snr) is not None:
            values |= {"snr": snr, "per_nat": 1.0 / np.log1p(snr)}
        return {name: np.log(np.maximum(value, NONE)) for name, value in values.items()}

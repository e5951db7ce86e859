"""The result of one check of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

PASSED, FAILED, SKIPPED = "ok", "WRONG", "not checked"
TOLERANCE = 1e-9  # relative, of numbers that are computed again


class CheckResult(NamedTuple):
    """One check.

    Args:
        name: what was checked.
        outcome: ok, WRONG or not checked.
        detail: how much was checked, what is wrong, or why it could not be checked.
    """

    name: str
    outcome: str
    detail: str


def first_difference(recorded: Iterable[Any], derived: Iterable[Any]) -> int | None:
    """The first place where two columns differ, relative to the larger value; nan equals nan."""
    a, b = np.asarray(recorded, float), np.asarray(derived, float)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b))
    same = near | (a == b) | (np.isnan(a) & np.isnan(b))
    return None if same.all() else int(np.argmin(same))

"""What the numbers of a problem must be: errors of one sentence that name field and device."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from solvers.arrays import Array, numbers, read_only

TYPICAL = {
    "bits": 1e6, "bits_fixed": 1e6, "rate_bps": 1e8, "compute_s": 1e-2, "before_s": 1e-2,
    "slack_s": 1e-1, "snr": 1e2, "cycles": 1e8, "kappa": 1e-28, "f_min_hz": 1e9, "f_max_hz": 1e9,
    "p_max_w": 0.1, "gain": 1e3,
}  # fmt: skip
"""Field -> its usual size in SI units."""


class NumberRangeError(ValueError):
    """Numbers that are allowed one by one, and too far apart for a method to compute with."""


def range_error(method: str, *records: Any) -> NumberRangeError:
    """The error for numbers that leave the range of doubles: names the one furthest from usual.

    Args:
        method: the method that cannot compute with them.
        records: dataclasses with fields [K] or [1], such as `PruningProblem` and `EnergyTerms`.
    """
    found = {
        field.name: values
        for record in records
        for field in fields(record)
        if isinstance(values := getattr(record, field.name), np.ndarray) and values.ndim == 1
    }
    far = {name: _decades(values, TYPICAL.get(name, 1.0)) for name, values in found.items()}
    name = max(far, key=lambda name: float(far[name].max()))
    k = int(np.argmax(far[name]))
    return NumberRangeError(
        f"{name} of device {k} is {found[name][k]:g}, too far from the other numbers for {method} "
        "to compute with; give SI units of sensible size."
    )


def _decades(values: Array, typical: float) -> Array:
    """Decades between values and a typical one; zero and infinity count as none."""
    usual = (values > 0) & (values < np.inf)
    far: Array = np.log10(np.where(usual, values, typical)) - np.log10(typical)
    return np.abs(far)


def level_table(levels: Any, rho_min: Array, rho_max: Array) -> Array:
    """Allowed pruning ratios [K, L] within [rho_min, rho_max], ascending, nan behind the last.

    Raises:
        ValueError: a level outside [0, 1], a shape that does not fit, a device without any level.
    """
    count = len(rho_min)
    table = numbers("levels", levels, "give the allowed values of rho, [L] or [K, L]")
    fits = table.ndim == 1 or (table.ndim == 2 and table.shape[0] == count)
    if not fits or table.shape[-1] == 0:
        raise ValueError(
            f"levels has shape {table.shape}; give [L] or [K, L] with K = {count}, nan-padded."
        )
    table = np.broadcast_to(table, (count, table.shape[-1]))
    wrong = ~np.isnan(table) & ~((table >= 0) & (table <= 1))
    if wrong.any():
        k = int(np.argmax(wrong.any(axis=1)))
        raise ValueError(
            f"levels of device {k} contain {table[k][wrong[k]][0]:g}; a level is between 0 and 1."
        )
    inside = (table >= rho_min[:, None]) & (table <= rho_max[:, None])
    table = np.sort(np.where(inside, table, np.nan), axis=1)
    if np.isnan(table[:, 0]).any():
        k = int(np.argmax(np.isnan(table[:, 0])))
        raise ValueError(
            f"levels of device {k} have none between rho_min {rho_min[k]:g} "
            f"and rho_max {rho_max[k]:g}."
        )
    return read_only(table)

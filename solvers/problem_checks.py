"""What a problem's numbers must be: one sentence that names the field and the device."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

Array = np.ndarray
FINITE = float(np.finfo(float).max)
USUAL = {  # about, in SI units
    "bits": 1e6, "bits_fixed": 1e6, "rate_bps": 1e8, "compute_s": 1e-2, "before_s": 1e-2, "slack_s": 1e-1, "snr": 1e2,
    "cycles": 1e8, "kappa": 1e-28, "f_min_hz": 1e9, "f_max_hz": 1e9, "p_max_w": 0.1, "gain": 1e3,
}  # fmt: skip
NUMBERS = "give a number or an array of numbers, one per device"


def numbers(name: str, value, advice: str = NUMBERS) -> Array:
    """A new array of floats; of what numpy would turn into one, text, dates and masked values are none."""
    try:
        given = np.asarray(value)
        words = given.dtype.kind == "O" and any(
            isinstance(each, str | bytes) for each in given.flat
        )
        if np.ma.is_masked(value) or given.dtype.kind not in "biufO" or words:
            raise TypeError
        return np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {_shown(value)}; {advice}.") from None


def _shown(value) -> str:
    """The beginning of it, on one line."""
    try:
        return f"{' '.join(repr(value).split()):.60}"
    except ValueError:  # Python does not print integers of more than some thousand digits
        return "a number of too many digits"


def broadcast(given: dict) -> dict[str, Array]:
    """Every field as a read-only array [K]; at least one of them decides K."""
    arrays = {name: numbers(name, value) for name, value in given.items()}
    try:
        shape = np.broadcast_shapes((1,), *(a.shape for a in arrays.values()))
    except ValueError:
        shape = ()
    if len(shape) != 1 or shape[0] == 0:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items() if a.ndim)
        raise ValueError(
            f"The fields have shapes {shapes}; give every field one number or one value per device."
        )
    return {name: read_only(np.broadcast_to(a, shape)) for name, a in arrays.items()}


def read_only(values: Array) -> Array:
    values.setflags(write=False)
    return values


def require(name: str, values: Array, good: Array, allowed: str) -> None:
    """Raise ValueError with the first device for which `good` [K] is false."""
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(f"{name} of device {k} is {values[k]:g}; it must be {allowed}.")


def between(
    name: str,
    values: Array,
    low: float | Array,
    high: float | Array,
    allowed: str,
    open_: bool = False,
):
    """low <= values <= high, or low < values <= high where ``open_``."""
    require(name, values, (values > low if open_ else values >= low) & (values <= high), allowed)


def validate(p) -> None:
    """Raise ValueError unless the fields of a `PruningProblem` are what they may be."""
    for name in ("bits", "compute_s", "bits_fixed") + (
        ("before_s",) if p.before_s is not None else ()
    ):
        between(name, getattr(p, name), 0.0, FINITE, "finite and not negative")
    for name in ("rate_bps", "weight") + (("snr",) if p.snr is not None else ()):
        between(name, getattr(p, name), 0.0, FINITE, "finite and positive", open_=True)
    between(
        "slack_s", p.slack_s, -np.inf, np.inf, "a number (inf stands for no deadline)", open_=True
    )
    between("rho_max", p.rho_max, 0.0, 1.0, "between 0 and 1")
    between("rho_min", p.rho_min, 0.0, p.rho_max, "between 0 and rho_max")


def refuse_levels(p, method: str) -> None:
    """Raise ValueError where rho is to be one of given levels: that is not convex."""
    if p.levels is not None:
        advice = "for levels use the method levels, or leave them away"
        raise ValueError(f"{method} chooses any rho within its bounds; {advice}.")


def extreme(method: str, *records) -> ValueError:
    """What to say where numbers leave the range of doubles on the way: which device's is the furthest from the usual.

    records: dataclasses with fields [K] or [1], such as a `PruningProblem` and its `EnergyTerms`.
    """
    names = [
        (field.name, getattr(record, field.name)) for record in records for field in fields(record)
    ]
    found = {
        name: values
        for name, values in names
        if isinstance(values, np.ndarray) and values.ndim == 1
    }
    far = {name: _decades(values, USUAL.get(name, 1.0)) for name, values in found.items()}
    name = max(far, key=lambda name: float(far[name].max()))
    k = int(np.argmax(far[name]))
    return ValueError(
        f"{name} of device {k} is {found[name][k]:g}, too far from the other numbers for {method} to compute with; "
        "give SI units of sensible size."
    )


def _decades(values: Array, usual: float) -> Array:
    """How far from a usual value; what is zero or infinite is not far."""
    return np.abs(
        np.log10(np.where((values > 0) & (values < np.inf), values, usual)) - np.log10(usual)
    )


def level_table(levels, rho_min: Array, rho_max: Array) -> Array:
    """Allowed pruning ratios [K, L], ascending, nan behind the last: those within [rho_min, rho_max].

    Raises:
        ValueError: a level outside [0, 1], a shape that does not fit, a device without any level.
    """
    count, table = (
        len(rho_min),
        numbers("levels", levels, "give the allowed values of rho, [L] or [K, L]"),
    )
    if (
        table.ndim not in (1, 2)
        or table.shape[-1] == 0
        or (table.ndim == 2 and table.shape[0] != count)
    ):
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
    table = np.sort(
        np.where((table >= rho_min[:, None]) & (table <= rho_max[:, None]), table, np.nan), axis=1
    )
    if np.isnan(table[:, 0]).any():
        k = int(np.argmax(np.isnan(table[:, 0])))
        raise ValueError(
            f"levels of device {k} have none between rho_min {rho_min[k]:g} and rho_max {rho_max[k]:g}."
        )
    return read_only(table)

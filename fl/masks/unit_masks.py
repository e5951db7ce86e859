"""Masks of weights and of units: which are kept.

A unit mask says for every hidden group of a layout (`Layout.groups`) which of its units stay: name
of the group -> bool [units]. `Layout.expand` turns it into a mask bool [P]. Torch is imported only
where weights are ranked, so that submodels can be priced without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor

import numpy as np

from fl.contracts import Array, Tensor
from fl.errors import ModelError
from fl.models.layout import Group, Layout, Slot, along

Units = dict[str, Array]
ROUNDING = 1e-9  # so that 0.07 * 100 = 7.000000000000001 is 7


# --- units of a submodel -------------------------------------------------------------------------


def unit_count(width: float, units: int, rounding: str = "down") -> int:
    """How many of ``units`` a submodel of that width in (0, 1] keeps, at least one.

    ``rounding``: down, as FedLPS, or up, as HeteroFL, FjORD and FedRolex.
    """
    exact = width * units
    count = floor(exact + ROUNDING) if rounding == "down" else ceil(exact - ROUNDING)
    return min(max(1, count), units)


def hidden(layout: Layout) -> dict[str, Group]:
    """The groups whose units can be left out: all but the output layer.

    Raises:
        ModelError: they are not known.
    """
    if layout.no_units is not None:
        raise ModelError(layout.no_units)
    return {name: group for name, group in layout.groups.items() if group.hidden}


def chosen(layout: Layout, width: float, rounding: str, order: Callable[[Group], Array]) -> Units:
    """The first units of every hidden group in its ``order`` int [units], by the width."""
    kept = {}
    for name, group in hidden(layout).items():
        kept[name] = np.zeros(group.units, dtype=bool)
        kept[name][order(group)[: unit_count(width, group.units, rounding)]] = True
    return kept


def prefix(layout: Layout, width: float, rounding: str = "down") -> Units:
    """The first units of every group: ordered dropout, HeteroFL."""
    return chosen(layout, width, rounding, lambda group: np.arange(group.units))


def rolling(layout: Layout, width: float, start: int) -> Units:
    """A window of units from ``start`` on, round the end: FedRolex, whose start is the round."""
    return chosen(layout, width, "up", lambda group: (start + np.arange(group.units)) % group.units)


def random(layout: Layout, width: float, rng: np.random.Generator, rounding: str = "down") -> Units:
    """Units at random, the groups one after the other from one generator: federated dropout."""
    return chosen(layout, width, rounding, lambda group: rng.permutation(group.units))


def top(layout: Layout, scores: Mapping[str, Array], width: float) -> Units:
    """The units with the largest scores [units] of their group: FedLPS, eq. (4).

    Of equal ones the one with the lower index comes first.
    """
    by_score = {name: np.argsort(-each, kind="stable") for name, each in scores.items()}
    return chosen(layout, width, "down", lambda group: by_score[group.name])


def magnitude(layout: Layout, w: Array, width: float) -> Units:
    """The units with the largest sum of absolute weights, in the numpy model w [P]."""
    return top(layout, unit_sums(layout, np.abs(w)), width)


def unit_sums(layout: Layout, values: Array) -> Units:
    """Sums of ``values`` [P] over the weights (no biases) that lead into each hidden unit."""
    index, sizes = owners(layout), [group.units for group in hidden(layout).values()]
    owned = index >= 0
    sums = np.bincount(index[owned], weights=values[: len(index)][owned], minlength=sum(sizes))
    pieces = np.split(sums, np.cumsum(sizes))[: len(sizes)]  # none without hidden layers
    return dict(zip(hidden(layout), pieces, strict=True))


def owners(layout: Layout, kinds: Sequence[str] = ("weight", "embedding")) -> Array:
    """To which unit each coordinate belongs, int [P]; -1: to none.

    Units are counted through the hidden groups in order. A weight belongs to the unit that it leads
    into: its row, in an embedding its column. Biases, norms and tensors of no such kind belong to
    none (FedLPS, |w|_J of eq. (8)).
    """
    index = np.full(layout.size, -1)
    for slot in layout.slots:
        place = next((i for i, axis in enumerate(slot.axes) if axis is not None), None)
        if slot.kind in kinds and place is not None:
            index[slot.slice].reshape(slot.shape)[...] = numbers(layout, slot, place)
    return index


def memberships(layout: Layout) -> list[Array]:
    """On which hidden unit each coordinate lies, by dimension of its tensor: int [P] as `owners`.

    `Layout.expand` keeps what lies on kept units in all of them.
    """
    places = [np.full(layout.size, -1) for _ in range(max(len(slot.axes) for slot in layout.slots))]
    for slot in layout.slots:
        for place, axis in enumerate(slot.axes):
            if axis is not None:
                places[place][slot.slice].reshape(slot.shape)[...] = numbers(layout, slot, place)
    return [index for index in places if (index >= 0).any()]


def numbers(layout: Layout, slot: Slot, place: int) -> Array:
    """The unit of each index of a dimension, shaped to run along it; -1: of no hidden group."""
    axis, first = slot.axes[place], 0
    if axis is None:
        return np.array(-1)
    for name, group in hidden(layout).items():
        if name == axis.group:
            units = np.arange(slot.shape[place]) // axis.repeat % group.units
            return along(first + units, place, len(slot.shape))
        first += group.units
    return np.array(-1)


def output_layer(layout: Layout) -> Array:
    """The weights and biases that make the outputs of the model, bool [P].

    Those of the classifier where it is not known which they are (`Layout.output`).
    """
    if layout.output is None:
        return layout.role("classifier")
    return layout.where(
        lambda slot: any(axis and axis.group == layout.output for axis in slot.axes[:1])
    )


# --- single weights, in torch --------------------------------------------------------------------


def largest(score: Tensor, among: Tensor, keep: int) -> Tensor:
    """The largest scores: Liu, eq. (21).

    Of equal scores the one with the lower index is kept. A score that is not a number counts as the
    largest.

    Args:
        score: [P].
        among: Which coordinates are candidates, bool [P].
        keep: How many stay.

    Returns:
        Those that stay, bool [P].
    """
    import torch

    values = torch.nan_to_num(score[among], nan=torch.inf, posinf=torch.inf)
    size = len(values)
    chosen = torch.full_like(values, keep >= size, dtype=torch.bool)
    if 0 < keep < size:
        threshold = values.kthvalue(size - keep + 1).values
        chosen = values > threshold
        ties = (values == threshold).nonzero().flatten()
        chosen[ties[: keep - int(chosen.sum())]] = True
    mask = torch.zeros_like(among)
    mask[among] = chosen
    return mask


def importance(before: Tensor, after: Tensor) -> Tensor:
    """Cheap importance |u_hat - u| [P] of every weight after a warm-up: Liu, eq. (20)."""
    return (after - before).abs()


def kept_count(rho: float, prunable: int) -> int:
    """How many of N_u weights stay at ratio rho: (1 - rho) N_u, rounded (Liu, eq. (21))."""
    return round((1.0 - rho) * prunable)

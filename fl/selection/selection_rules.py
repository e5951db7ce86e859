"""The selection rules by name; a rule is a pure function, and a new one is a row of `RULES`.

Methods that choose by what they have learned of the devices (Oort, REFL) have a `select` of their
own and read no rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fl.contracts import Array, Streams, View

MANY = 1_000  # devices of a cell from which on a single one is drawn among candidates
TRIED = 8  # candidates for a place
OCCASIONS = 256  # of which one stream draws the candidates

# (view, number of participants S, stream) -> devices int [S], each idle and none twice
SelectionRule = Callable[[View, int, np.random.Generator], Array]


def uniform(view: View, count: int, stream: np.random.Generator) -> Array:
    """Devices drawn without replacement, each as likely: McMahan et al., 2017, Algorithm 1."""
    if count >= len(view.idle):
        return view.idle
    # One number for every device of the cell, so that no draw depends on who else is there.
    lots = stream.random(len(view.samples))[view.idle]
    return view.idle[smallest(lots, count)]


def one_of_many(view: View, streams: Streams) -> Array | None:
    """One device, each idle one as likely, without a draw for every device of the cell.

    Where one place becomes free while others are at work, and devices are many: the first idle one
    of some `candidates`. None: one draw for each, by `uniform`, also where no candidate is idle.
    """
    if view.wanted != 1 or not len(view.in_flight) or len(view.idle) < 2:
        return None
    rows = candidates(streams, range(view.turn, view.turn + 1), len(view.samples))
    if rows is None:
        return None
    tried, last = rows[0], len(view.idle) - 1
    found = tried[view.idle[np.minimum(np.searchsorted(view.idle, tried), last)] == tried]
    return found[:1] if len(found) else None


def candidates(streams: Streams, turns: range, devices: int) -> Array | None:
    """Devices drawn with replacement, int [occasions, TRIED]; None: there are fewer than MANY.

    Args:
        streams: of the run.
        turns: numbers of the occasions, `View.turn`.
        devices: K, of the cell.
    """
    if devices < MANY:
        return None
    first, last = turns.start // OCCASIONS, (turns.stop - 1) // OCCASIONS
    drawn = [
        streams.stream("candidates", round=block).random((OCCASIONS, TRIED))
        for block in range(first, last + 1)
    ]
    here = slice(turns.start - first * OCCASIONS, turns.stop - first * OCCASIONS)
    return (np.concatenate(drawn)[here] * devices).astype(int)


def smallest(lots: Array, count: int) -> Array:
    """``np.argsort(lots, kind="stable")[:count]``, without putting the others in order."""
    if not count:
        return np.zeros(0, dtype=int)
    # Of lots in [0, 1) the least are below about count / size: the others need no look.
    likely = (count + 6.0 * count**0.5 + 16.0) / len(lots)
    few = np.flatnonzero(lots < likely)
    if len(few) >= count:
        return few[np.argsort(lots[few], kind="stable")[:count]]
    cut = np.partition(lots, count - 1)[count - 1]
    below = np.flatnonzero(lots < cut)
    chosen = np.concatenate([below, np.flatnonzero(lots == cut)[: count - len(below)]])
    return chosen[np.argsort(lots[chosen], kind="stable")]


def everyone(view: View, count: int, stream: np.random.Generator) -> Array:
    """All idle devices."""
    return view.idle


def best_channel(view: View, count: int, stream: np.random.Generator) -> Array:
    """The devices with the largest uplink rate; of equal ones the first."""
    order = np.argsort(-view.rate_bps[view.idle], kind="stable")
    return view.idle[order[:count]]


def round_robin(view: View, count: int, stream: np.random.Generator) -> Array:
    """The next devices in the order of their numbers: Yang et al., IEEE Trans. Commun., 2020.

    The turn moves on by the number of participants in every round, or by the jobs that were handed
    out where jobs overlap; absent devices are skipped.
    """
    devices, first = len(view.samples), view.handed_out or view.g * count
    order = np.argsort((view.idle - first) % devices, kind="stable")
    return view.idle[order[:count]]


# name -> rule, description, source
RULES: dict[str, tuple[SelectionRule, str, str]] = {
    "uniform": (uniform, "drawn, each device as likely as another", "McMahan et al., AISTATS 2017"),
    "all": (everyone, "every device that is there; reads no participants", "Liu et al."),
    "best-channel": (
        best_channel,
        "the largest uplink rates; devices far away may never be asked",
        "a baseline of this project",
    ),
    "round-robin": (
        round_robin,
        "in turn by their numbers, so that nobody waits longer than others",
        "Yang et al., IEEE Transactions on Communications, 2020",
    ),
}

"""The selection rules by name; a rule is a pure function, and a new one is a row of `RULES`.

Methods that choose by what they have learned of the devices (Oort, REFL) have a `select` of their
own and read no rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fl.contracts import Array, View

# (view, number of participants S, stream) -> devices int [S], each idle and none twice
SelectionRule = Callable[[View, int, np.random.Generator], Array]


def uniform(view: View, count: int, stream: np.random.Generator) -> Array:
    """Devices drawn without replacement, each as likely: McMahan et al., 2017, Algorithm 1."""
    if count >= len(view.idle):
        return view.idle
    # One number for every device of the cell, so that no draw depends on who else is there.
    lots = stream.random(len(view.samples))[view.idle]
    return view.idle[smallest(lots, count)]


def smallest(lots: Array, count: int) -> Array:
    """``np.argsort(lots, kind="stable")[:count]``, without putting the others in order."""
    if not count:
        return np.zeros(0, dtype=int)
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

    The turn moves on by the number of participants in every round; who is not there is passed over.
    """
    devices = len(view.samples)
    order = np.argsort((view.idle - view.g * count) % devices, kind="stable")
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

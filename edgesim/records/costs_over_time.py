"""Bits and joules that jobs have spent by the time a version is made, from their spans."""

from __future__ import annotations

import numpy as np

from edgesim.records.run_tables.table_columns import Columns

# columns of rounds: how many jobs are at work, or have arrived, and have no row yet
UNCLOSED = ("in_flight", "held")


def share_until(spans: Columns, g: int, time_s: float) -> np.ndarray:
    """How much of each span lies before version g is made; of those that go on, by their time.

    Args:
        spans: columns of the table spans, S long.
        g: the version.
        time_s: when it is made, s.

    Returns:
        In [0, 1], [S].
    """
    start_s, end_s = (np.asarray(spans[name], float) for name in ("start_s", "end_s"))
    lasts_s = end_s - start_s
    whole = (np.asarray(spans["round"]) <= g) | ((start_s < time_s) & (end_s <= time_s))
    share = np.divide(time_s - start_s, lasts_s, out=np.zeros_like(lasts_s), where=lasts_s > 0.0)
    return np.where(whole, 1.0, np.clip(share, 0.0, 1.0))


def spent_by_versions(spans: Columns, g: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """What all spans have spent by the time that each version is made; see `share_until`.

    Args:
        spans: columns of the table spans.
        g: the versions [V], ascending.
        time_s: when they are made [V], s, never earlier than the one before.

    Returns:
        Bits and joules [2, V].
    """
    start_s, end_s = (np.asarray(spans[name], float) for name in ("start_s", "end_s"))
    first = np.searchsorted(time_s, start_s, side="right")  # the first version made after its start
    whole = np.maximum(first, np.searchsorted(time_s, end_s))
    whole = np.minimum(whole, np.searchsorted(g, np.asarray(spans["round"])))
    parts = first < whole  # spans that are parted by a version
    first, start_s = first[parts], start_s[parts]
    last, end_s = whole[parts], end_s[parts]
    begun_s, left_s = time_s[first] - start_s, end_s - time_s[last - 1]
    at, count = np.concatenate([whole[~parts], first, last]), len(time_s)
    ends, spent = np.concatenate([first + 1, last]), []
    for name in ("bits", "energy_j"):
        value = np.asarray(spans[name], float)
        rate = value[parts] / (end_s - start_s)
        amounts = np.concatenate([value[~parts], rate * begun_s, rate * left_s])
        added = np.bincount(at, amounts, count + 1)[:count]
        # what goes on from one version to the next, of spans that neither begin nor end in between
        lasting = np.cumsum(np.bincount(ends, np.concatenate([rate, -rate]), count + 1))
        added += lasting[:count] * np.diff(time_s, prepend=0.0)
        spent.append(np.cumsum(added))
    return np.stack(spent)

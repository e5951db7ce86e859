"""Max-min fair rates of flows over links with capacities: progressive filling.

Bertsekas and Gallager, Data Networks, 1992, Section 6.5.2: all rates rise together; where a link is
full, those of its flows stay.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Link = TypeVar("Link", bound=Hashable)
SAME = 1e-12  # relative: links that fill up at the same time


def max_min_rates(
    paths: Sequence[Sequence[Link]], capacity_bps: Mapping[Link, float]
) -> list[float]:
    """Rates of flows, none of which can rise without lowering one that is not larger.

    Args:
        paths: of each flow, the links that it uses.
        capacity_bps: of each link, bit/s; inf: no limit.

    Returns:
        The rate of each flow, bit/s; inf where none of its links has a limit.

    Example:
        >>> max_min_rates([["a"], ["a", "b"], ["b"]], {"a": 1.0, "b": 3.0})
        [0.5, 0.5, 2.5]
    """
    rates = [math.inf] * len(paths)
    rising = set(range(len(paths)))
    left = {link: capacity_bps[link] for path in paths for link in path}
    while rising:
        count = {link: sum(link in paths[i] for i in rising) for link in left}
        level = {link: left[link] / n for link, n in count.items() if n}
        least = min(level.values(), default=math.inf)
        if math.isinf(least):
            break
        full = {link for link, at in level.items() if at <= least * (1.0 + SAME)}
        for i in [i for i in rising if full & set(paths[i])]:
            rates[i] = least
            rising.remove(i)
            for link in paths[i]:
                left[link] = max(left[link] - least, 0.0)
    return rates

"""Groups whose members are there together more often than by chance: beta-binomial blocks.

In every block of time a group draws p ~ Beta(a, b), and each member is there with probability p.
Two members are correlated by 1 / (a + b + 1).
"""

from __future__ import annotations

import numpy as np

from edgesim.presence.timeline import Timeline
from fl.contracts import Array, Streams


def beta_blocks(
    a: float, b: float, block_s: float, count: int, streams: Streams, group: str, purpose: str
) -> Timeline:
    """Members of one group.

    Args:
        a: first parameter of the beta law.
        b: second parameter.
        block_s: length of a block, s.
        count: members.
        streams: the random streams.
        group: name of the streams that the whole group shares.
        purpose: name of the streams of these members.
    """

    def states(block: int) -> Array:
        share = streams.stream(group, round=block).beta(a, b)
        return streams.stream(purpose, round=block).random(count) < share

    blocks = [states(0)]
    starts_on = blocks[0]

    def state_in(block: int) -> Array:
        while len(blocks) <= block:
            blocks.append(states(len(blocks)))
        return blocks[block]

    def edges_after(n: int, before_s: Array) -> Array:
        state, edge_s = starts_on ^ (n % 2 == 1), np.full(count, np.inf)
        block = int(np.round(before_s.min() / block_s))
        while not np.isfinite(edge_s).all():
            block += 1
            behind = block * block_s > before_s
            ends = behind & np.isinf(edge_s) & (state_in(block) != state)
            edge_s[ends] = block * block_s
        return edge_s

    return Timeline(starts_on, edges_after)

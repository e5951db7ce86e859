"""One round of many devices that do not meet, all at once: the events of `edgesim.engine.rounds.take_part` as columns [S].

The same sums in the same order as one process per device would make them, so that every table has the same bytes. Each
device has its fixed share, an ideal downlink, no failure, and work and bits that are known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.grants import Grants
from edgesim.network.link import StalledLink
from fl.contracts import Array, Payload, Stage, View


@dataclass(frozen=True, eq=False)
class Stretch:
    """A span of each of some devices [S], as `edgesim.records.span.Span` has it; ``begun``: those that came so far."""

    phase: str
    device: Array
    begun: Array
    start_s: Array
    end_s: Array
    bits: Array | float = 0.0
    cycles: Array | float = 0.0
    flops: Array | float = 0.0
    energy_j: Array | float = 0.0

    @property
    def seconds(self) -> Array:
        return self.end_s - self.start_s


@dataclass(frozen=True, eq=False)
class Played:
    """How a round went for the devices of its grants [S]: their spans in order, and when each was done.

    back: bool, has it uploaded everything by the end of the round?     busy_until_s: end of its last span.
    """

    spans: tuple[Stretch, ...]
    back: Array
    busy_until_s: Array


def play(
    cell: Cell,
    grants: Grants,
    stages: Sequence[Stage],
    payload: Payload,
    start_s: float,
    until_s: float,
) -> Played:
    """Download, compute, upload: Liu, eqs. (24), (25), (28). What is not done at ``until_s`` is cut off there.

    Args:
        stages, payload: works and bits are arrays [S].
    """
    k = grants.device
    now, on = np.full(len(k), start_s), np.ones(len(k), dtype=bool)
    download = Stretch("download", k, on, now, now, bits=payload.bits_down)
    spans = [priced(download, cell.ledger.receiving(k))]
    for stage in stages:
        span, on = compute(cell, grants, stage, now, on, until_s)
        spans.append(priced(span, cell.ledger.computing(grants)))
        now = np.where(span.begun, span.end_s, now)
    end_s, left = carry(cell.channel, payload.bits_up, grants, now, on, until_s)
    upload = Stretch("upload", k, on, now, end_s, bits=payload.bits_up - left)
    spans.append(priced(upload, cell.ledger.sending(grants)))
    return Played(tuple(spans), on & (left <= 0.0), end_s)


def priced(span: Stretch, joules: Any) -> Stretch:
    return replace(span, energy_j=joules(span))


def compute(
    cell: Cell, grants: Grants, stage: Stage, now: Array, on: Array, until_s: float
) -> tuple[Stretch, Array]:
    """A stage of those that are still ``on``, and who is after it: `edgesim.engine.rounds.compute`."""
    cycles, flops = cell.fleet.cycles(grants.device, stage.work), stage.work.flops
    planned_s = cycles / grants.cpu_hz
    done_s = now + planned_s
    end_s = np.minimum(done_s, until_s)
    in_time = done_s <= until_s
    with np.errstate(invalid="ignore", divide="ignore"):
        done = np.where(in_time, 1.0, np.minimum((end_s - now) / planned_s, 1.0))
    span = Stretch(
        stage.name, grants.device, on, now, end_s, cycles=cycles * done, flops=flops * done
    )
    return span, on & in_time


def carry(
    channel: Channel, bits: Array, grants: Grants, start_s: Array, on: Array, until_s: float
) -> tuple[Array, Array]:
    """(when each upload ended or was cut off [S], s; bits that are left [S]): `edgesim.network.link.Link.carry`.

    Devices are taken block of fading by block, so that each block's gains are drawn once.
    """
    now, left = start_s.copy(), np.array(bits, dtype=float)
    sending = np.flatnonzero(on & (left > 0.0))
    while sending.size:
        here, edge_s = in_first_block(channel, now, sending)
        gain = channel.gains(float(now[here[0]]))[grants.device[here]]
        rate_bps = channel.rate_bps(grants.share[here], grants.power_w[here], gain)
        with np.errstate(divide="ignore"):
            needed_s = np.where(rate_bps > 0.0, left[here] / rate_bps, math.inf)
        stuck = here[np.isinf(needed_s) & (np.isinf(edge_s) | (grants.share[here] <= 0.0))]
        if stuck.size:
            bits_left = f"device {grants.device[stuck[0]]} has {left[stuck[0]]:g} bit to carry"
            raise StalledLink(f"{bits_left} but a rate of 0 that will never change")
        finishes = now[here] + needed_s <= edge_s
        wake_s = now[here] + np.where(finishes, needed_s, edge_s - now[here])
        end_s = np.minimum(wake_s, until_s)
        sent = np.where(finishes & (wake_s <= until_s), left[here], rate_bps * (end_s - now[here]))
        left[here] -= np.minimum(sent, left[here])
        now[here], cut = end_s, here[wake_s > until_s]
        sending = sending[(left[sending] > 0.0) & ~np.isin(sending, cut)]
    return now, left


def in_first_block(channel: Channel, now: Array, sending: Array) -> tuple[Array, Array | float]:
    """Those of ``sending`` who are in the earliest block of fading that anybody is in, and when it ends for them."""
    if channel.static:
        return sending, math.inf
    block = channel.blocks(now[sending])
    here = sending[block == block.min()]
    return here, np.maximum(
        (block.min() + 1) * channel.coherence_s, np.nextafter(now[here], math.inf)
    )


def waiting(
    cell: Cell, view: View, played: Played | None, grants: Grants, start_s: float, end_s: float
) -> Stretch:
    """Idle power until the end of the round, of every device that is there: `edgesim.engine.rounds.log_waiting`."""
    since_s = np.full(len(cell.fleet), start_s)
    if played is not None:
        since_s[grants.device] = played.busy_until_s
    k = view.idle[(cell.fleet.idle_power_w[view.idle] > 0.0) & (since_s[view.idle] < end_s)]
    span = Stretch("idle", k, np.ones(len(k), dtype=bool), since_s[k], np.full(len(k), end_s))
    return priced(span, cell.ledger.idle(k))

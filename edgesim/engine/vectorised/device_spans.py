"""Spans of many devices in one round as arrays [S]: `rounds.take_part` without events.

Sums are taken in the same order as by one process per device, so that every table has the same
bytes. Each device has a fixed share, an ideal downlink, no failure, and known work and bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.flows.stalled_links import stalled
from edgesim.network.grants import Grants
from edgesim.network.span_energy import Joules
from fl.contracts import Array, Payload, Stage, View


@dataclass(frozen=True, eq=False)
class SpanColumns:
    """One span of each of some devices [S], with the fields of `edgesim.records.span.Span`.

    ``begun`` is true for the devices that reached this span before the round ended.
    """

    phase: str
    device: Array
    begun: Array
    start_s: Array
    end_s: Array
    bits: Array | float = 0.0
    cycles: Array | float = 0.0
    flops: Array | float = 0.0
    energy_j: Array | float = 0.0
    waited_s: Array | float = 0.0
    waited_air_s: float | None = None

    @property
    def seconds(self) -> Array:
        return self.end_s - self.start_s


@dataclass(frozen=True, eq=False)
class DeviceSpans:
    """The spans of the devices of a round's grants [S], in the order in which they happen.

    Args:
        spans: download, stages, upload.
        arrived: bool [S], everything was uploaded by the end of the round.
        busy_until_s: end of the last span [S], s.
    """

    spans: tuple[SpanColumns, ...]
    arrived: Array
    busy_until_s: Array


NOTHING_PLAYED = DeviceSpans((), np.zeros(0, dtype=bool), np.zeros(0))


def take_part(
    cell: Cell,
    grants: Grants,
    stages: Sequence[Stage],
    payload: Payload,
    start_s: float | Array,
    until_s: float,
) -> DeviceSpans:
    """Download, compute, upload: Liu, eqs. (24), (25), (28).

    Args:
        cell: devices, band and channel.
        grants: shares, clocks and powers of S devices.
        stages: stages of the computation, their works arrays [S].
        payload: bits, arrays [S].
        start_s: start of the round, or of each device [S], s.
        until_s: what is not done by then is cut off, s.
    """
    k = grants.device
    now, active = np.full(len(k), start_s), np.ones(len(k), dtype=bool)
    download = SpanColumns("download", k, active, now, now, bits=payload.bits_down)
    spans = [charged(download, cell.ledger.receiving(k))]
    for stage in stages:
        span, active = compute(cell, grants, stage, now, active, until_s)
        spans.append(charged(span, cell.ledger.computing(grants)))
        now = np.where(span.begun, span.end_s, now)
    bits_up = np.asarray(payload.bits_up, dtype=float)
    end_s, left = carry(cell.channel, bits_up, grants, now, active, until_s)
    upload = SpanColumns("upload", k, active, now, end_s, bits=bits_up - left)
    spans.append(charged(upload, cell.ledger.sending(grants)))
    return DeviceSpans(tuple(spans), active & (left <= 0.0), end_s)


def charged(span: SpanColumns, energy: Joules) -> SpanColumns:
    """The span with its joules."""
    return replace(span, energy_j=energy(span))


def compute(
    cell: Cell, grants: Grants, stage: Stage, now: Array, active: Array, until_s: float
) -> tuple[SpanColumns, Array]:
    """A stage of the active devices, and who is active after it: `rounds.compute`."""
    cycles, flops = cell.fleet.cycles(grants.device, stage.work), stage.work.flops
    planned_s = cycles / grants.cpu_hz
    done_s = now + planned_s
    end_s = np.minimum(done_s, until_s)
    in_time = done_s <= until_s
    with np.errstate(invalid="ignore", divide="ignore"):
        done = np.where(in_time, 1.0, np.minimum((end_s - now) / planned_s, 1.0))
    amounts = {"cycles": cycles * done, "flops": flops * done}
    return SpanColumns(stage.name, grants.device, active, now, end_s, **amounts), active & in_time


def carry(
    channel: Channel, bits: Array, grants: Grants, start_s: Array, active: Array, until_s: float
) -> tuple[Array, Array]:
    """End of each upload [S], s, and bits left [S]: `edgesim.network.flows.link.Link.carry`."""
    # Block of fading by block, so that each block's gains are drawn once.
    now, left = start_s.copy(), np.array(bits, dtype=float)
    sending = np.flatnonzero(active & (left > 0.0))
    block = np.zeros(len(sending)) if channel.static else channel.blocks(now[sending])
    while sending.size:
        first = block.min()
        at = block == first
        here = sending[at]
        begin_s, todo, share = now[here], left[here], grants.share[here]
        gain = channel.gains(float(begin_s[0]))[grants.device[here]]
        rate_bps = channel.rate_bps(share, grants.power_w[here], gain)
        with np.errstate(divide="ignore"):
            needed_s = np.where(rate_bps > 0.0, todo / rate_bps, math.inf)
        next_s = math.inf if channel.static else (first + 1) * channel.coherence_s
        edge_s = np.maximum(next_s, np.nextafter(begin_s, math.inf))
        stuck = here[np.isinf(needed_s) & (np.isinf(edge_s) | (share <= 0.0))]
        if stuck.size:
            first_stuck = stuck[0]
            device, device_share = grants.device[first_stuck], grants.share[first_stuck]
            raise stalled(device, left[first_stuck], device_share)
        finishes = begin_s + needed_s <= edge_s
        wake_s = begin_s + np.where(finishes, needed_s, edge_s - begin_s)
        end_s = np.minimum(wake_s, until_s)
        sent = np.where(finishes & (wake_s <= until_s), todo, rate_bps * (end_s - begin_s))
        todo -= np.minimum(sent, todo)
        now[here], left[here] = end_s, todo
        stays = (todo > 0.0) & (wake_s <= until_s)
        following = np.full(len(here), first + 1)
        if (early := stays & (end_s != next_s)).any():  # just before the edge, by rounding
            following[early] = channel.blocks(end_s[early])
        block[at] = following
        goes_on = np.ones(len(sending), dtype=bool)
        goes_on[at] = stays
        if not stays.all():
            sending, block = sending[goes_on], block[goes_on]
    return now, left


def idle_spans(
    cell: Cell, view: View, played: DeviceSpans, grants: Grants, start_s: float, end_s: float
) -> SpanColumns:
    """Waiting until the end of the round: `edgesim.clocks.waiting_devices.charge_idle_power`."""
    since_s = np.full(len(cell.fleet), start_s)
    since_s[grants.device] = played.busy_until_s
    k = view.idle[(cell.fleet.idle_power_w[view.idle] > 0.0) & (since_s[view.idle] < end_s)]
    begun, until_s = np.ones(len(k), dtype=bool), np.full(len(k), end_s)
    return charged(SpanColumns("idle", k, begun, since_s[k], until_s), cell.ledger.idle(k))

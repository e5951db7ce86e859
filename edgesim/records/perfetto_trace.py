"""Spans of a run as a Trace Event file for Perfetto: one track per device and resource."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from edgesim.records.run_tables.table_columns import Columns, as_list

RADIO = {"download", "upload", "handover"}
TRACKS = {"cpu": 0, "radio": 1}
MAX_DEVICES = 1000  # in a trace: more tracks cannot be read


def trace_json(spans: Columns) -> str:
    """Spans (columns of `table_columns.SPANS`) -> JSON text, in microseconds of simulated time.

    Of more than `MAX_DEVICES` devices the trace has the first ones, and says so in ``otherData``.
    """
    devices = np.unique(np.asarray(spans["device"], dtype=int))
    cut = {}
    if len(devices) > MAX_DEVICES:
        shown = np.asarray(spans["device"]) < devices[MAX_DEVICES]
        spans = {name: np.asarray(values)[shown] for name, values in spans.items()}
        note = f"the first {MAX_DEVICES} of {len(devices)}; all of them are in spans.parquet"
        cut = {"otherData": {"devices": note}}
    columns = {name: as_list(values) for name, values in spans.items()}
    content = {"displayTimeUnit": "ms", **cut, "traceEvents": list(events(columns))}
    return json.dumps(content, separators=(",", ":"))


def events(spans: dict[str, list]) -> Iterator[dict]:
    """Trace events: the names of the tracks, then one complete event per span."""
    for device in sorted(set(spans["device"])):
        of_device = {"ph": "M", "name": "process_name", "pid": device}
        yield {**of_device, "args": {"name": f"device {device}"}}
        for track, tid in TRACKS.items():
            yield {**of_device, "name": "thread_name", "tid": tid, "args": {"name": track}}
    columns = ("round", "device", "phase", "start_s", "end_s", "bits", "cycles", "energy_j")
    for g, device, phase, start, end, bits, cycles, joules in zip(
        *(spans[c] for c in columns), strict=True
    ):
        yield {
            "ph": "X",
            "name": phase,
            "pid": device,
            "tid": TRACKS["radio" if phase in RADIO else "cpu"],
            "ts": start * 1e6,
            "dur": (end - start) * 1e6,
            "args": {"round": g, "bits": bits, "cycles": cycles, "energy_j": joules},
        }

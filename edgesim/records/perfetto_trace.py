"""The spans of a run as a Trace Event file: one track per device and resource; opens in Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from edgesim.records.table_files import Columns, plain

RADIO = {"download", "upload"}
TRACKS = {"cpu": 0, "radio": 1}
MOST = 1000  # devices that a trace shows: nobody scrolls through more tracks


def trace_json(spans: Columns) -> str:
    """Spans (columns as in `tables.SPANS`) -> JSON text; times in microseconds of simulated time.

    Of more than `MOST` devices the first ones, which ``otherData`` then says.
    """
    devices = np.unique(np.asarray(spans["device"], dtype=int))
    cut = {}
    if len(devices) > MOST:
        shown = np.asarray(spans["device"]) < devices[MOST]
        spans = {name: np.asarray(values)[shown] for name, values in spans.items()}
        cut = {
            "otherData": {
                "devices": f"the first {MOST} of {len(devices)}; all of them are in spans.parquet"
            }
        }
    shown = {name: plain(values) for name, values in spans.items()}
    content = {"displayTimeUnit": "ms", **cut, "traceEvents": list(events(shown))}
    return json.dumps(content, separators=(",", ":"))


def events(spans: dict[str, list]) -> Iterator[dict]:
    for device in sorted(set(spans["device"])):
        yield {
            "ph": "M",
            "name": "process_name",
            "pid": device,
            "args": {"name": f"device {device}"},
        }
        for track, tid in TRACKS.items():
            yield {
                "ph": "M",
                "name": "thread_name",
                "pid": device,
                "tid": tid,
                "args": {"name": track},
            }
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

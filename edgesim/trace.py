"""The spans of a run as a Trace Event file: one track per device and resource; opens in Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator

RADIO = {"download", "upload"}
TRACKS = {"cpu": 0, "radio": 1}


def trace_json(spans: dict[str, list]) -> str:
    """Spans (columns as in `eventlog.SPANS`) -> JSON text; times in microseconds of simulated time."""
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": list(events(spans))}, separators=(",", ":"))


def events(spans: dict[str, list]) -> Iterator[dict]:
    for device in sorted(set(spans["device"])):
        yield {"ph": "M", "name": "process_name", "pid": device, "args": {"name": f"device {device}"}}
        for track, tid in TRACKS.items():
            yield {"ph": "M", "name": "thread_name", "pid": device, "tid": tid, "args": {"name": track}}
    columns = ("round", "device", "phase", "start_s", "end_s", "bits", "cycles", "energy_j")
    for g, device, phase, start, end, bits, cycles, joules in zip(*(spans[c] for c in columns), strict=True):
        yield {
            "ph": "X",
            "name": phase,
            "pid": device,
            "tid": TRACKS["radio" if phase in RADIO else "cpu"],
            "ts": start * 1e6,
            "dur": (end - start) * 1e6,
            "args": {"round": g, "bits": bits, "cycles": cycles, "energy_j": joules},
        }

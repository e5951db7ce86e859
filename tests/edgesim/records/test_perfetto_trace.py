"""The trace of a run."""

from __future__ import annotations

import json

import numpy as np

from edgesim.records.perfetto_trace import MAX_DEVICES, trace_json


def test_a_trace_shows_the_first_devices_and_says_so():
    count = MAX_DEVICES + 7
    names = ("round", "start_s", "end_s", "bits", "cycles", "energy_j")
    spans = {name: np.zeros(count) for name in names} | {
        "device": np.arange(count),
        "phase": ["upload"] * count,
    }
    trace = json.loads(trace_json(spans))
    assert {event["pid"] for event in trace["traceEvents"]} == set(range(MAX_DEVICES))
    assert trace["otherData"]["devices"].startswith(f"the first {MAX_DEVICES} of {count};")
    few = {name: values[:MAX_DEVICES] for name, values in spans.items()}
    assert "otherData" not in json.loads(trace_json(few))

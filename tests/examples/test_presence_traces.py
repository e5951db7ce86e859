"""examples/presence_traces.py writes what the reader of presence files reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edgesim.presence.trace_file import read_intervals

EXAMPLE = Path(__file__).parents[2] / "examples" / "presence_traces.py"


def converted(kind, clients, folder, devices):
    (folder / "given.json").write_text(json.dumps(clients))
    paths = folder / "given.json", folder / "there.csv"
    subprocess.run([sys.executable, EXAMPLE, kind, *paths], check=True)
    return read_intervals(folder / "there.csv", devices)


def test_fedscale_is_repeated_up_to_the_longest_trace(tmp_path):
    clients = {
        "a": {"active": [0, 20], "inactive": [10, 25], "finish_time": 30},
        "b": {"active": [5], "inactive": [8], "finish_time": 12},
    }
    assert converted("fedscale", clients, tmp_path, 2) == [
        [(0.0, 10.0), (20.0, 25.0)],
        [(5.0, 8.0), (17.0, 20.0), (29.0, 30.0)],
    ]


def test_flash_is_ready_while_locked_on_wifi_and_charging(tmp_path):
    lines = [
        ("00:00:00", "screen_lock"),
        ("00:00:05", "wifi"),
        ("00:00:10", "battery_charged_on"),
        ("00:00:12", "87%"),
        ("00:00:40", "screen_unlock"),
        ("00:01:00", "screen_off"),
        ("00:01:30", "4g"),
    ]
    text = "".join(f"2020-01-02 {time}\t{state}\n" for time, state in lines)
    found = converted("flash", {"u": {"messages": text}}, tmp_path, 1)
    assert found == [[(10.0, 40.0), (60.0, 90.0)]]


@pytest.mark.parametrize(
    ("kind", "clients", "problem"),
    [
        ("flash", {"u": {"messages": ""}}, "no client has a message"),
        ("flash", {}, "no client has a message"),
        ("flash", {"u": {}}, "no 'messages'"),
        ("flash", {"u": {"messages": "noon\twifi"}}, "time data 'noon' does not match"),
        ("flash", [1], "'list' object has no attribute"),
        ("fedscale", {}, "it has no client"),
        ("fedscale", {"a": {"active": [0], "inactive": [1], "finish_time": 0}}, "finish_time of 0"),
    ],
)
def test_what_is_no_trace_is_one_sentence(tmp_path, kind, clients, problem):
    (tmp_path / "given.json").write_text(json.dumps(clients))
    paths = tmp_path / "given.json", tmp_path / "there.csv"
    done = subprocess.run(
        [sys.executable, EXAMPLE, kind, *paths], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and not paths[1].exists()
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"{paths[0]} is no trace of {kind}: ") and problem in sentence

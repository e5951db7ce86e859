"""Turn traces of other simulators into a presence file of edgesim: device,start_s,end_s.

    python examples/presence_traces.py fedscale behaviour.json presence.csv
    python examples/presence_traces.py flash user_behavior.json presence.csv

FedScale keeps its behaviour trace in a pickle, which can run code when it is opened: turn it into
JSON where you trust it, {client: {"active": [s], "inactive": [s], "finish_time": s}}. A client is
there from active[i] to inactive[i], and again after finish_time; a presence file has one period
for all, so that every client is written out up to the longest one.

FLASH keeps {client: {"messages": "YYYY-mm-dd HH:MM:SS<TAB>state<NEWLINE>..."}}. A client is ready
while its screen is locked and it has wifi and a charger; times count from the first of all.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

Intervals = list[tuple[float, float]]
LOCK = {"screen_lock": True, "screen_off": True, "screen_on": False, "screen_unlock": False}
CHARGE = {"battery_charged_on": True, "battery_charged_off": False}
NETWORKS = ("wifi", "unknown", "2g", "3g", "4g", "5g")


def of_fedscale(clients: dict[str, dict]) -> list[Intervals]:
    """Intervals of every client, repeated up to the longest trace."""
    if not clients:
        raise ValueError("it has no client")
    longest_s = max(client["finish_time"] for client in clients.values())
    found = []
    for client in clients.values():
        own, start_s = [], 0.0
        pairs = list(zip(client["active"], client["inactive"], strict=False))
        if pairs and client["finish_time"] <= 0:  # they would be repeated for ever
            raise ValueError(f"a client has a finish_time of {client['finish_time']}")
        while start_s < longest_s and pairs:
            own += [(start_s + on, min(start_s + off, longest_s)) for on, off in pairs]
            start_s += client["finish_time"]
        found.append([(on, off) for on, off in own if on < off])
    return found


def of_flash(clients: dict[str, dict]) -> list[Intervals]:
    """Intervals of every client, from the first message of all."""
    lines = [read_messages(client["messages"]) for client in clients.values()]
    if not any(lines):
        raise ValueError("no client has a message")
    begin = min(line[0][0] for line in lines if line)
    return [ready(line, begin) for line in lines]


def read_messages(text: str) -> list[tuple[datetime, str]]:
    """(time, state) of every line, in order of time."""
    lines = [line.split("\t") for line in text.strip().splitlines()]
    return sorted((datetime.strptime(time, "%Y-%m-%d %H:%M:%S"), state) for time, state in lines)


def ready(messages: list[tuple[datetime, str]], begin: datetime) -> Intervals:
    """When a client was locked, on wifi and charging."""
    locked = charging = wifi = False
    since_s, found = None, []
    for time, message in messages:
        state, now_s = message.strip().lower(), (time - begin).total_seconds()
        locked, charging = LOCK.get(state, locked), CHARGE.get(state, charging)
        wifi = state == "wifi" if state in NETWORKS else wifi
        if locked and charging and wifi:
            since_s = now_s if since_s is None else since_s
        elif since_s is not None:
            found += [(since_s, now_s)] if now_s > since_s else []
            since_s = None
    return found


def write(intervals: list[Intervals], path: Path) -> None:
    """The file; device k is the client in place k."""
    rows = [f"{k},{on!r},{off!r}" for k, own in enumerate(intervals) for on, off in own]
    path.write_text("\n".join(["device,start_s,end_s", *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("fedscale", "flash"):
        sys.exit(__doc__)
    kind, given, presence = sys.argv[1:]
    convert = {"fedscale": of_fedscale, "flash": of_flash}[kind]
    try:
        found = convert(json.loads(Path(given).read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        sys.exit(f"{given} is no trace of {kind}: {reason}")
    write(found, Path(presence))

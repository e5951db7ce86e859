"""Other programs on the same work, each in an environment of its own: starting them and reading
what they took.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Conv, Linear

HERE = Path(__file__).parent
LIMIT_S = 900.0  # a peer that takes longer hangs, or the setting is not for it


class Failed(Exception):
    """A peer gave no seconds; the message says why in one line."""


def chosen(given: Sequence[str], device: str) -> dict[str, str]:
    """Name -> interpreter of ``NAME=PYTHON`` on the command line; ends the program with one
    sentence on anything else.

    An interpreter that is missing or lacks the peer ends nothing: its line in the table says so.
    """
    known = sorted(path.stem.removeprefix("peer_") for path in HERE.glob("peer_*.py"))
    peers = dict(one.partition("=")[::2] for one in given)
    for name, python in peers.items():
        if name not in known or not python:
            print(
                f"--peer {name}={python}: give NAME=PYTHON, one of {', '.join(known)} and its interpreter"  # noqa: E501
            )
            raise SystemExit(2)
    if peers and device != "cpu":
        print(f"--peer with --device {device}: the peers run on the CPU; leave out one of the two")
        raise SystemExit(2)
    return peers


def seconds(peer: str, python: str, work: dict[str, Any]) -> list[float]:
    """Wall time of each round of a peer, run by the interpreter ``python``.

    Raises:
        Failed: it does not start, ends with an error, takes longer than ``LIMIT_S`` or prints no
        seconds.
    """
    command = [python, str(HERE / f"peer_{peer}.py"), json.dumps(work)]
    try:
        code, printed, complaint = ended(command)
    except OSError as error:
        raise Failed(f"{python} does not start ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"no result after {LIMIT_S:.0f} s") from None
    if code:
        raise Failed(reason(complaint) or f"exit code {code}")
    return read(printed, work["rounds"])


def ended(command: list[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a program; whatever it has started ends with it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            printed, complaint = process.communicate(timeout=LIMIT_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, printed, complaint


def read(printed: str, rounds: int) -> list[float]:
    """The last line that a peer prints: seconds, one per round."""
    last = printed.strip().rpartition("\n")[2]
    try:
        spent = [float(one) for one in json.loads(last)]
    except (ValueError, TypeError):
        raise Failed(f"its last line is no list of seconds: {last[:80]!r}") from None
    if len(spent) != rounds:
        raise Failed(f"{len(spent)} rounds instead of {rounds}")
    return spent


def reason(complaint: str) -> str:
    """The line of a traceback that names the error: some programs print more after it."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or [""])[-1]


def described(architecture: Architecture) -> list[list]:
    """The layers in words and numbers, for programs that know nothing of ours."""
    return [
        ["conv", layer.inputs, layer.outputs, layer.side, layer.padding, layer.bias]
        if isinstance(layer, Conv)
        else ["linear", layer.inputs, layer.outputs, layer.bias]
        if isinstance(layer, Linear)
        else [layer.kind]
        for layer in architecture.layers
    ]

"""Runs that are killed after versions of the model and go on: the bytes of one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from edgesim import simulate
from edgesim.scenario import Scenario


class KilledError(Exception):
    """Stands for kill -9: nothing is written after a checkpoint."""


def killed_after(*versions: int) -> Callable[[dict[str, Any]], None]:
    """Progress that ends a run after each of these rounds, or versions."""

    def progress(event: dict[str, Any]) -> None:
        if event["kind"] == "round" and event["round"] in versions:
            raise KilledError

    return progress


def assert_resumed(
    given: Scenario, folder: Path, versions: Iterable[int], names: Iterable[str]
) -> Any:
    """Compare a run that is killed after each of some versions with one that is not.

    Args:
        given: scenario.
        folder: gets the folders whole and killed.
        versions: after which it is killed, in their order.
        names: files that have the same bytes.

    Returns:
        The run that is not killed.
    """
    whole = simulate(given, out=folder / "whole")
    for version in versions:
        with pytest.raises(KilledError):
            simulate(given, out=folder / "killed", progress=killed_after(version))
    simulate(given, out=folder / "killed")
    for name in names:
        one, other = (folder / run / name for run in ("whole", "killed"))
        assert one.read_bytes() == other.read_bytes(), name
    return whole

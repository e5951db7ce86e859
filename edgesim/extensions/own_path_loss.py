"""Path losses by code of the user's own, towards one base station or each of several."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.extensions.entry_points import find_function, more_names
from edgesim.hierarchy.edge_streams import EdgeStreams
from edgesim.network.device import Fleet
from edgesim.network.given_losses.varying_channel import OwnLosses, checked_losses
from edgesim.scenario.loader import Scenario
from edgesim.scenario.radio.own_loss_schema import CodePathLoss
from fl.contracts import Array, Streams
from solvers.arrays import read_only

PATH_LOSS = ("network", "channel", "path_loss")
CODE = (*PATH_LOSS, "code")
OVER_TIME = ("loss_db", "next_change_s")  # what an object has whose losses follow the time


@dataclass(frozen=True)
class OwnPathLoss:
    """The function that a scenario names, called with devices beside a base station.

    Args:
        function: (fleet, streams) -> path losses [K], dB, or an object over time; with a parameter
            ``site`` it gets the number of the base station too.
        name: as it stands in the scenario.
        streams: random streams of the run; those of the first site are the run's own.
    """

    function: Callable[..., Any]
    name: str
    streams: Streams

    def __call__(self, fleet: Fleet, site: int) -> Array:
        """Path losses of all devices [K] towards a base station, dB (`LossesByPlace`).

        Args:
            fleet: the devices, placed from the nearest image of that base station.
            site: its number.

        Raises:
            ScenarioKeyError: what the code gave is no path loss by place.
        """
        losses = self.losses(fleet, site)
        if isinstance(losses, OwnLosses):
            kind = type(losses.process).__name__
            problem = f"is {self.name}, which gave {kind} with losses over time; with several base "
            problem += "stations, or devices that move, give an array by place"
            raise ScenarioKeyError(CODE, problem)
        return losses

    def losses(self, fleet: Fleet, site: int = 0) -> Array | OwnLosses:
        """Towards a base station: by place [K], dB, or over time."""
        given = self._given(fleet, site)
        if over_time(given, self.name):
            return OwnLosses(given, len(fleet), CODE, self.name)
        return checked_losses(given, len(fleet), CODE, f"{self.name}, which")

    def _given(self, fleet: Fleet, site: int) -> Any:
        """What the code gives, unchecked."""
        named = {"site": site} if self._takes_site else {}
        with np.errstate(all="ignore"):  # whatever is no path loss is refused
            return self.function(unwritable(fleet), EdgeStreams(self.streams, site), **named)

    @property
    def _takes_site(self) -> bool:
        own = inspect.unwrap(self.function)
        if isinstance(own, partial) and "site" in own.keywords:
            return False  # it is given already
        try:
            return "site" in inspect.signature(own).parameters
        except ValueError:  # of what is written in C nobody knows
            return False


def unwritable(fleet: Fleet) -> Fleet:
    """The same devices in arrays of their own that cannot be written to."""
    return replace(fleet, **{name: read_only(each.copy()) for name, each in vars(fleet).items()})


def over_time(given: Any, name: str) -> bool:
    """Whether the losses that code gave follow the time.

    Raises:
        ScenarioKeyError: it has half of what that needs.
    """
    missing = [each for each in OVER_TIME if not hasattr(given, each)]
    if len(missing) == 1:
        problem = f"is {name}, which gave {type(given).__name__} without {missing[0]}(time_s)"
        raise ScenarioKeyError(CODE, problem)
    return not missing


def find_path_loss(scenario: Scenario, streams: Streams, allow_code: bool) -> OwnPathLoss | None:
    """The path loss by code that a scenario names; None: it names none.

    Args:
        scenario: the checked scenario.
        streams: random streams of the run.
        allow_code: code of the user's own may run.

    Raises:
        ScenarioKeyError: it cannot be used.
    """
    loss = scenario.network.channel.path_loss
    if not isinstance(loss, CodePathLoss):
        return None
    for i, name in enumerate(loss.reads):
        if not (scenario.folder / name).is_file():
            problem = f"is {name}, which is no file; a path is relative to the scenario"
            raise ScenarioKeyError((*PATH_LOSS, "reads", i), problem)
    arguments = "the devices and the random streams"
    function = find_function("channels", scenario, loss.code, CODE, allow_code, arguments)
    if function is None:
        allowed = f"./file.py:function{more_names('channels')}"
        raise ScenarioKeyError(CODE, f"is {loss.code}; allowed is {allowed}")
    return OwnPathLoss(function, loss.code, streams)

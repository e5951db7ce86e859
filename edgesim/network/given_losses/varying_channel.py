"""A channel whose path losses change over time, at instants that are known beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from edgesim.errors import ScenarioKeyError, counted
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.make_channel import channel_options
from edgesim.network.propagation.path_loss import large_scale_of, linear
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Streams

MOST_DB = 1000.0  # of what a path loss is; inf: no connection
LEAST_DB = 1e-3  # of the largest path loss, but 0; linear gains are below it


class LossProcess(Protocol):
    """Path losses over simulated time: pure functions, so that a resumed run needs no state."""

    def loss_db(self, time_s: float) -> Array:
        """Path loss of all devices [K] at an instant, dB."""
        ...

    def next_change_s(self, time_s: float) -> float:
        """The first instant after ``time_s`` at which a loss changes, s; inf: never again."""
        ...


class VaryingChannel(Channel):
    """A channel with the losses of a process, times shadowing and fading.

    Args:
        process: the path losses.
        shadowing: of all devices [K], linear.
        options: of `Channel`, but path_gain.
    """

    by_blocks = False

    def __init__(self, process: LossProcess, shadowing: Any, **options: Any) -> None:
        self.process, self.shadowing = process, np.asarray(shadowing)
        first = linear(-process.loss_db(0.0)) * self.shadowing
        super().__init__(path_gain=first, **options)
        self._held = (math.inf, -math.inf, first)  # (since, until, gains) without fading

    @property
    def static(self) -> bool:
        return False

    def next_change_s(self, time_s: float) -> float:
        change_s = self.process.next_change_s(time_s)
        return change_s if self.fading is None else min(change_s, super().next_change_s(time_s))

    def large_scale_at(self, time_s: float) -> tuple[Array, Array]:
        """(path gain x shadowing [K], linear; K factor [K], linear) at ``time_s``."""
        since_s, until_s, gains = self._held
        if not since_s <= time_s < until_s:
            gains = linear(-self.process.loss_db(time_s)) * self.shadowing
            self._held = time_s, self.process.next_change_s(time_s), gains
        return gains, super().large_scale_at(time_s)[1]

    def gains(self, time_s: float) -> Array:
        """h of all devices [K] at ``time_s``, linear: path loss x shadowing x fading power."""
        gains = self.large_scale_at(time_s)[0]
        return gains if self.fading is None else gains * self.fading.power(self.block(time_s))


@dataclass(frozen=True)
class OwnLosses:
    """The losses of code of the user's own, checked whenever they are asked for.

    Args:
        process: the user's, with the methods of `LossProcess`.
        devices: K.
        key: of the scenario, that names it.
        name: as it stands there.
    """

    process: Any
    devices: int
    key: tuple[str, ...]
    name: str

    def loss_db(self, time_s: float) -> Array:
        """Path loss of all devices [K] at an instant, dB."""
        given = self.process.loss_db(time_s)
        asked = f"{self.name}, whose loss_db({time_s:g})"
        return checked_losses(given, self.devices, self.key, asked)

    def next_change_s(self, time_s: float) -> float:
        """The first instant after ``time_s`` at which a loss changes, s; inf: never again."""
        given = self.process.next_change_s(time_s)
        try:
            change_s = float(given)
        except (TypeError, ValueError):
            change_s = math.nan
        if not change_s > time_s:
            problem = f"is {self.name}, whose next_change_s({time_s:g}) gave {str(given)[:40]}; "
            problem += "it must be later than the time that was asked for, or inf"
            raise ScenarioKeyError(self.key, problem)
        return change_s


def checked_losses(given: Any, devices: int, key: tuple[str, ...], name: str) -> Array:
    """Path losses [K] in dB as floats.

    Args:
        given: what code of the user's own gave.
        devices: K.
        key: of the scenario, that names the code.
        name: as it stands there, and what of it gave them.

    Raises:
        ScenarioKeyError: they are not K numbers, one of them is no path loss, or all seem to be
            linear gains.
    """
    wanted = f"give {counted(devices, 'number')}, dB"
    try:
        values = np.asarray(given)
    except Exception as error:  # each kind of object has errors of its own
        problem = f"is {name} gave {type(given).__name__}, which is no array: {str(error)[:80]}"
        raise ScenarioKeyError(key, f"{problem}; {wanted}") from error
    if values.dtype.kind not in "iuf" or np.ma.is_masked(given):
        found = "masked" if np.ma.is_masked(given) else values.dtype
        raise ScenarioKeyError(key, f"is {name} gave values that are {found}; {wanted}")
    loss_db = values.astype(float)
    if loss_db.shape != (devices,):
        shape = list(loss_db.shape)
        problem = f"is {name} gave an array {shape}; give one path loss per device, [{devices}]"
        raise ScenarioKeyError(key, problem)
    odd = np.flatnonzero(~((loss_db >= 0.0) & ((loss_db <= MOST_DB) | np.isposinf(loss_db))))
    if odd.size:
        k, worst = odd[0], loss_db[odd[0]]
        hint = "; it seems to be a gain, whose sign is the other one" if worst < 0.0 else ""
        if np.isneginf(worst):
            hint = "; a device stands at the base station itself, where log10 gives that: move it"
        if np.isnan(worst):
            hint = "; a device without distance and position has no distance_m, x_m and y_m"
        problem = f"is {name} gave {worst:g} dB for device {k}; a path loss is from 0 to "
        problem += f"{MOST_DB:g} dB, or inf where there is no connection{hint}"
        raise ScenarioKeyError(key, problem)
    if gains := seem_linear_gains(loss_db):
        raise ScenarioKeyError(key, f"is {name} gave {gains}")
    return loss_db


def seem_linear_gains(loss_db: Array) -> str:
    """Why losses of any shape, dB, seem to be linear gains, as the end of a sentence; "": no."""
    most = loss_db.max(initial=0.0, where=np.isfinite(loss_db))
    if not 0.0 < most < LEAST_DB:
        return ""
    problem = f"{most:g} dB at most; these seem to be linear gains"
    return f"{problem}, whose losses are -10 log10 of them"


def make_varying_channel(
    network: NetworkSection, fleet: Fleet, streams: Streams, process: LossProcess
) -> VaryingChannel:
    """The channel of a scenario's ``network`` section, with the losses of a process.

    Args:
        network: the section.
        fleet: the devices.
        streams: random streams of the run.
        process: the path losses.
    """
    links = large_scale_of(network, fleet, streams, np.zeros(len(fleet)))
    options = channel_options(network, links, streams) | {"links": None}
    return VaryingChannel(process, options.pop("path_gain"), **options)

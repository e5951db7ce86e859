"""Plans whose gains depend on them, turn by turn until both agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from edgesim.network.planning.anderson_mixing import AndersonMixing
from edgesim.network.planning.round_uploads import RoundUploads, SendingTimes
from fl.contracts import Array
from solvers import Allocation, InfeasibleError, PruningProblem

# Turns at most of a plan whose gains depend on it, those after which gains of the instant mix,
# and the relative change that ends them: where a law is all but at its largest value a turn mends
# little. With gains of the instant devices end at the threshold, of which a millionth is left for
# rounding.
REPLANS, PLAIN_REPLANS, SAME_GAIN, SAME_INSTANT = 80, 40, 1e-4, 1e-7
STEEPEST = 20.0  # slope of a gain by the one that was planned with, both as logarithms


class Turn(NamedTuple):
    """One turn of a plan whose gains depend on it.

    Args:
        problem: that was solved.
        gain: channel gains that its answer calls for [K], linear.
        answer: of the allocator.
        extra_s: by which the threshold is stretched, s.
        unsettled: see `RoundPlan`.
    """

    problem: PruningProblem
    gain: Array
    answer: Allocation
    extra_s: float
    unsettled: float = 0.0


def settled(
    found: Turn,
    turn: Callable[[Array, float], Turn],
    uploads: RoundUploads,
    times: SendingTimes,
    full_hz: Array,
) -> Turn:
    """The plan again with the gains that carry its rates, until both agree.

    The gain that carries the planned rate depends on the band in use where noise is a density
    and, of a mean or a quantile, on the time left for sending.
    Turns come nearer from below, which keeps the promise of a quantile: the table of coding
    schemes has few rates, and a gain a trifle above one of their corners promises the next.
    """
    done = 0
    while True:
        answer = found.answer
        cpu_hz = full_hz if answer.cpu_hz is None else answer.cpu_hz
        window_s = times.next_s(uploads, answer.rho, cpu_hz, found.extra_s)
        gain = uploads.gains(answer.share, window_s, answer.power_w)
        if times.settled and same_gains(gain, found.gain):
            return found._replace(gain=gain)
        if done == REPLANS:
            return found._replace(unsettled=gain_change(gain, found.gain))
        found, done = turn(gain, *times.extra_s.tolist()), done + 1


def settled_at_instant(
    found: Turn,
    turn: Callable[[Array, float], Turn],
    uploads: RoundUploads,
    window_s: Array,
    band: float,
) -> Turn:
    """The plan again with the gains of the instant in the shares that it grants.

    Planned with more a device gets less of the band, where its gain is another: steps are those
    of a secant, as the answers alone may swing ever further. A plan of which the next does not
    fit is kept.
    """
    last: tuple[Array, Array] | None = None
    mixed, done = AndersonMixing(), 0
    while True:
        answer = found.answer
        gain = uploads.gains(answer.share * band, window_s, answer.power_w)
        if done == REPLANS or same_gains(gain, found.gain, SAME_INSTANT):
            break
        asked, got = np.log(found.gain), np.log(gain)
        if done < PLAIN_REPLANS:
            wanted, last = np.exp(asked + secant_step(asked, got, last)), (asked, got)
        else:
            wanted = mixed(found.gain, gain)
        try:
            found, done = turn(wanted, 0.0), done + 1
        except InfeasibleError:
            break
    change = gain_change(gain, found.gain)
    return found._replace(unsettled=change if change > SAME_GAIN else 0.0)


def same_gains(one: Array, other: Array | None, relative: float = SAME_GAIN) -> bool:
    """Whether another turn of a plan that its gains depend on would mend little."""
    return other is not None and np.allclose(one, other, rtol=relative, atol=0.0)


def gain_change(one: Array, other: Array) -> float:
    """The largest relative change of gains [K] from others, of those that are positive."""
    before = other > 0.0
    return float(np.abs(one[before] / other[before] - 1.0).max(initial=0.0))


def secant_step(asked: Array, got: Array, last: tuple[Array, Array] | None) -> Array:
    """By how much the next turn asks for more, each by its own secant; all as logarithms [K].

    Args:
        asked: gains that a turn was planned with.
        got: those of its shares.
        last: both of the turn before; None: there is none.
    """
    slope: Any = 0.0
    if last is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.nan_to_num((got - last[1]) / (asked - last[0]))
        slope = np.clip(slope, -STEEPEST, 0.5)
    step: Array = (got - asked) / (1.0 - slope)
    return step

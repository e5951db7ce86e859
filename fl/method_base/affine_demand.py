"""Demands that are affine in the pruning ratio, and the costs of many devices as columns.

Pure functions: what a device computes and sends comes in as a function of device and ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fl.contracts import Array, Demand, Payload, Stage, Work
from fl.errors import MethodError
from fl.method_base.hook_answers import number

StagesOf = Callable[[int, Any], tuple[Stage, ...]]  # device, ratios [n] -> works [n]
PlannedOf = Callable[[int, float], tuple[Work, float]]  # device, ratio -> work, bits up


def total_work(stages: Sequence[Stage]) -> Work:
    """The sum over stages."""
    return Work(sum(s.work.weight_steps for s in stages), sum(s.work.flops for s in stages))


def upload_bits(payload: Payload) -> float:
    """Bits of an upload that is known before the device trains.

    Raises:
        MethodError: only the training knows them.
    """
    if payload.bits_up is None:
        problem = "names a method whose payload gives bits_up None, which no plan can be made with"
        raise MethodError("name", f"{problem}; give a number, or define planned")
    return payload.bits_up


def affine_demand(
    chosen: Array, classes: Array, planned: PlannedOf, bounds: tuple[float, float], bits_down: float
) -> Demand:
    """What the chosen devices need, as an affine function of the pruning ratio rho.

    Args:
        chosen: Devices, int [S].
        classes: Numbers [S]; devices of the same number cost the same.
        planned: Work and upload bits of a device at a ratio; affine in the ratio.
        bounds: Smallest and largest ratio that may be allocated, in [0, 1].
        bits_down: Download of each device, bit.
    """
    _, first, kind = np.unique(classes, return_index=True, return_inverse=True)
    kinds = np.stack([_affine(planned, int(k), bounds) for k in np.asarray(chosen)[first]])
    fixed, prunable = kinds[kind].transpose(1, 2, 0)
    return Demand(
        devices=np.asarray(chosen),
        bits_fixed=fixed[2],
        bits_prunable=prunable[2],
        work_fixed=Work(*fixed[:2]),
        work_prunable=Work(*prunable[:2]),
        rho_min=np.full(len(chosen), bounds[0]),
        rho_max=np.full(len(chosen), bounds[1]),
        weight=np.ones(len(chosen)),
        bits_down=np.full(len(chosen), bits_down),
    )


def _affine(planned: PlannedOf, k: int, bounds: tuple[float, float]) -> Array:
    """Fixed and prunable (weight steps, FLOPs, bits) [2, 3] of device k.

    Where the method decides rho, all of it counts as prunable: a short threshold then makes the
    device late, never infeasible.
    """

    def at(rho: float) -> Array:
        work, bits = planned(k, rho)
        return np.array(
            [
                number("stages, weight_steps of Work,", work.weight_steps),
                number("stages, flops of Work,", work.flops),
                number("payload, bits_up of Payload,", bits),
            ]
        )

    low, high = bounds
    if low == high < 1:
        return np.stack([np.zeros(3), at(low) / (1 - low)])
    fixed = at(1.0)
    return np.stack([fixed, at(0.0) - fixed])


def decided_demand(
    chosen: Array, works: Sequence[Work], payloads: Sequence[Payload], rho: Array
) -> Demand:
    """What the chosen devices need where the method has decided all of it.

    All of it counts as prunable, for the reason given in `affine_demand`.

    Args:
        chosen: Devices, int [S].
        works: Of each device at its ratio.
        payloads: Of each device at its ratio.
        rho: Pruned shares [S], below 1.
    """
    nothing, kept = np.zeros(len(chosen)), 1.0 - rho
    columns = np.array([(work.weight_steps, work.flops) for work in works], dtype=float).T
    return Demand(
        devices=np.asarray(chosen),
        bits_fixed=nothing,
        bits_prunable=np.array([each.bits_up for each in payloads], dtype=float) / kept,
        work_fixed=Work(nothing, nothing),
        work_prunable=Work(*(columns / kept)),
        rho_min=rho,
        rho_max=rho,
        weight=np.ones(len(chosen)),
        bits_down=np.array([each.bits_down for each in payloads], dtype=float),
    )


def cost_columns(
    devices: Array,
    classes: Array,
    rho: Array,
    stages: StagesOf,
    payload: Callable[[float], Payload],
) -> tuple[tuple[Stage, ...], Payload]:
    """Stages and payload of many devices, whose works and bits are arrays [S].

    Args:
        devices: int [S].
        classes: Numbers [S]; devices of the same number compute the same.
        rho: Their pruning ratios [S].
        stages: The computation of a device at several ratios.
        payload: What travels at a ratio.
    """
    _, kind = np.unique(classes, return_inverse=True)
    rank = np.argsort(kind, kind="stable")
    groups = np.split(rank, np.cumsum(np.bincount(kind))[:-1])
    costs = [stages(int(devices[group[0]]), rho[group]) for group in groups]
    ratios, which = np.unique(rho, return_inverse=True)
    payloads = [payload(ratio) for ratio in ratios.tolist()]
    bits = np.array([(each.bits_down, each.bits_up) for each in payloads], dtype=float)[which]
    columns = (_gathered(each, groups, len(devices)) for each in zip(*costs, strict=True))
    return tuple(columns), Payload(*bits.T)


def _gathered(stages: Sequence[Stage], groups: Sequence[Array], size: int) -> Stage:
    """One stage of groups of devices, as columns [size]."""
    columns = np.empty((2, size))
    for stage, group in zip(stages, groups, strict=True):
        columns[0, group], columns[1, group] = stage.work.weight_steps, stage.work.flops
    return Stage(stages[0].name, Work(*columns))

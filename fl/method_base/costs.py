"""What taking part costs a device: its work and its bits, and the demand that the allocation is made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fl.accounting import StepCost, step_cost
from fl.contracts import Demand, Job, Payload, Stage, State, Trained, View, Work
from fl.task import LearningTask

Array = np.ndarray


class Costs(ABC):
    """The question "how much" of a method: affine in the pruning ratio rho that it leaves open or sets."""

    task: LearningTask
    shared_count: int

    @abstractmethod
    def prunable(self) -> Array:
        """Weights that rho prunes, bool [P]."""

    @abstractmethod
    def stages(self, k: int, rho: float) -> tuple[Stage, ...]:
        """The computation of device k at pruning ratio rho, in order; affine in rho, which may be an array.

        It depends on k through its samples D_k alone, else the method says so in `alike`.
        """

    def payload(self, rho: float) -> Payload:
        """What travels: down the shared weights, up the kept ones; affine in rho up to the mask's own bits."""
        bits = self.task.accounting.weight_bits
        return Payload(bits_down=bits(self.shared_count), bits_up=bits(self.shared_count, rho))

    def rho_bounds(self) -> tuple[float, float]:
        """Pruning ratios that the allocator may choose; equal where the method decides."""
        return 0.0, 0.0

    def planned(self, k: int, rho: float) -> tuple[Work, float]:
        """Work and upload bits that the allocation plans with; affine in rho."""
        return total_work(self.stages(k, rho)), self.payload(rho).bits_up

    def forecast(self, view: View, k: int, rho: float) -> tuple[Stage, ...]:
        """The computation of device k that a check of the scenario shows, before the first round."""
        return self.stages(k, rho)

    def demand(self, state: State, view: View, chosen: Array) -> Demand:
        """`planned` of the chosen devices, as an affine function of rho."""
        low, high = self.rho_bounds()
        _, first, kind = np.unique(self.alike(chosen), return_index=True, return_inverse=True)
        kinds = np.stack([self._affine(int(k)) for k in np.asarray(chosen)[first]])
        fixed, prunable = kinds[kind].transpose(1, 2, 0)
        size = len(chosen)
        return Demand(
            devices=np.asarray(chosen),
            bits_fixed=fixed[2],
            bits_prunable=prunable[2],
            work_fixed=Work(*fixed[:2]),
            work_prunable=Work(*prunable[:2]),
            rho_min=np.full(size, low),
            rho_max=np.full(size, high),
            weight=np.ones(size),
            bits_down=np.full(size, self.payload(low).bits_down),
        )

    def alike(self, devices: Array) -> Array:
        """Numbers [S]: devices with the same number cost the same at the same rho.

        For the methods here those with equally many samples; one of the user's own is asked for every device, unless
        it says otherwise.
        """
        ours = type(self).__module__.startswith("fl.")
        return np.asarray(self.task.samples if ours else np.arange(self.task.devices))[devices]

    def priced(self, devices: Array, rho: Array) -> tuple[tuple[Stage, ...], Payload]:
        """`stages` and `payload` of many devices at their ratios [S]: works and bits are arrays [S]."""
        _, kind = np.unique(self.alike(devices), return_inverse=True)
        rank = np.argsort(kind, kind="stable")
        groups = np.split(rank, np.cumsum(np.bincount(kind))[:-1])
        costs = [self.stages(int(devices[group[0]]), rho[group]) for group in groups]
        ratios, which = np.unique(rho, return_inverse=True)
        payloads = [self.payload(ratio) for ratio in ratios.tolist()]
        bits = np.array(
            [(payload.bits_down, payload.bits_up) for payload in payloads], dtype=float
        )[which]
        return tuple(
            _gathered(each, groups, len(devices)) for each in zip(*costs, strict=True)
        ), Payload(*bits.T)

    def _affine(self, k: int) -> Array:
        """Fixed and prunable (weight steps, FLOPs, bits) [2, 3] of device k.

        Where the method decides rho, all of it counts as prunable: the threshold then makes the device late, never
        infeasible.
        """
        low, high = self.rho_bounds()
        if low == high < 1:
            return np.stack([np.zeros(3), self._costs(k, low) / (1 - low)])
        fixed = self._costs(k, 1.0)
        return np.stack([fixed, self._costs(k, 0.0) - fixed])

    def _costs(self, k: int, rho: float) -> Array:
        work, bits = self.planned(k, rho)
        return np.array([work.weight_steps, work.flops, bits])

    def work(
        self, k: int, trained: Array, steps: int, rho: float = 0.0, batch: float | None = None
    ) -> Work:
        """Work of ``steps`` steps of device k on the weights ``trained`` bool [P], pruned by rho where prunable."""
        batch = self.task.batch(k) if batch is None else batch
        return self.task.accounting.work(self._step_cost(trained), steps, batch, rho)

    def _step_cost(self, trained: Array) -> StepCost:
        """Remembered per mask object: the masks of a method's parts are the same arrays in every round."""
        memory = self._step_costs
        known = next((cost for mask, cost in memory if mask is trained), None)
        if known is None:
            known = step_cost(
                self.task.architecture, trained, self.prunable(), self.task.accounting
            )
            memory.append((trained, known))
        return known

    @cached_property
    def _step_costs(self) -> deque[tuple[Array, StepCost]]:
        return deque(maxlen=8)

    def charged(self, job: Job, trained: Trained) -> tuple[Stage, ...]:
        """The computation of a job whose ``stages`` are None, once it is trained."""
        raise NotImplementedError(
            f"{type(self).__name__} orders work that only the training tells; it needs charged"
        )


def total_work(stages: Sequence[Stage]) -> Work:
    """The sum over stages."""
    return Work(sum(s.work.weight_steps for s in stages), sum(s.work.flops for s in stages))


def _gathered(stages: Sequence[Stage], groups: Sequence[Array], size: int) -> Stage:
    """One stage of groups of devices, as columns [size]."""
    columns = np.empty((2, size))
    for stage, group in zip(stages, groups, strict=True):
        columns[0, group], columns[1, group] = stage.work.weight_steps, stage.work.flops
    return Stage(stages[0].name, Work(*columns))

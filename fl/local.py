"""The one training loop: masked SGD on the flat model of one device, phase by phase."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edgesim.contracts import Job, Phase, Trained
from fl.task import Task


def run(task: Task, job: Job) -> Trained:
    """Trains the phases of a job in order. The result depends on the job alone, not on who trains beside it."""
    done: list[Tensor] = []
    mask, loss = None, float("nan")
    for phase in job.phases:
        w = (phase.start(done) if callable(phase.start) else phase.start).clone()
        mask = phase.mask(done) if callable(phase.mask) else phase.mask
        loss = train(task, phase, w, mask, batches(task, phase, job))
        done.append(w)
    return Trained(job.finish(done) if job.finish else done[-1], mask, loss)


def batches(task: Task, phase: Phase, job: Job) -> Tensor:
    """Sample indices [steps, B] of a phase.

    Consecutive pieces of random orders of the device's own samples, one order after the other, from the stream
    (batches/<name>, device, round): a sample comes back only when all the others have been used.
    """
    mine = task.data.train_index[job.device]
    batch = task.batch(job.device)
    rng = task.streams.stream(f"batches/{phase.batches}", device=job.device, round=job.g)
    orders = -(-phase.steps * batch // len(mine))
    index = [rng.permutation(mine) for _ in range(orders)]
    if not index:
        return torch.empty((0, batch), dtype=torch.int64)
    return torch.cat([torch.from_numpy(one) for one in index])[: phase.steps * batch].view(phase.steps, batch)


def train(task: Task, phase: Phase, w: Tensor, mask: Tensor, index: Tensor) -> float:
    """w <- w - lr * mask * grad(loss), in place, once per batch. Returns the mean loss over the steps."""
    if len(index) == 0 or not bool(mask.any()):
        return float("nan")
    images, labels = task.train
    step = slot_step(task, phase, w, mask) if phase.loss is None else flat_step(phase, w, mask)
    total = torch.zeros((), device=w.device)
    for chosen in index.to(w.device):
        total += step(images[chosen], labels[chosen])
    return float(total) / len(index)


def slot_step(task: Task, phase: Phase, w: Tensor, mask: Tensor):
    """A step on cross entropy that differentiates only by the slots in which something is trained.

    The leaves are views into w, so the update is written into the flat model directly. Slots that are frozen are no
    variables of autograd: where only the classifier trains, nothing is kept of the convolutions and no backward pass
    goes through them.
    """
    masks = task.layout.split(mask)
    leaves = [view.detach().requires_grad_(bool(m.any())) for view, m in zip(task.layout.split(w), masks, strict=True)]
    rates = [slot_rate(phase.lr, slot.slice, slot.shape) for slot in task.layout.slots]
    trained = [
        (leaf, None if bool(m.all()) else m.to(w.dtype), rate)
        for leaf, m, rate in zip(leaves, masks, rates, strict=True)
        if leaf.requires_grad
    ]
    variables = [leaf for leaf, _, _ in trained]

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = cross_entropy(task.architecture.forward(leaves, x), y)
        gradients = torch.autograd.grad(loss, variables)
        with torch.no_grad():
            for (leaf, m, rate), gradient in zip(trained, gradients, strict=True):
                descend(leaf, gradient, m, rate)
        return loss.detach()

    return step


def flat_step(phase: Phase, w: Tensor, mask: Tensor):
    """A step on a loss of the method's own, a function of the flat model."""
    factor = None if bool(mask.all()) else mask.to(w.dtype)
    leaf = w.detach().requires_grad_(True)

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = phase.loss(leaf, x, y)
        (gradient,) = torch.autograd.grad(loss, [leaf])
        with torch.no_grad():
            descend(leaf, gradient, factor, slot_rate(phase.lr, slice(None), w.shape))
        return loss.detach()

    return step


def slot_rate(lr: float | Tensor, where: slice, shape: tuple[int, ...]) -> float | Tensor:
    """The learning rate of one slot: a number wherever it is the same for the whole slot."""
    if not isinstance(lr, Tensor):
        return lr
    part = lr[where]
    return float(part[0]) if bool((part == part[0]).all()) else part.reshape(shape)


def descend(leaf: Tensor, gradient: Tensor, mask: Tensor | None, rate: float | Tensor) -> None:
    """leaf -= rate * mask * gradient; a mask of None is all true."""
    if isinstance(rate, Tensor):
        gradient, rate = gradient * rate, 1.0
    if mask is None:
        leaf.add_(gradient, alpha=-rate)
    else:
        leaf.addcmul_(gradient, mask, value=-rate)

"""What the machine reaches at best, against which a share of a peak means something."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch

SECONDS = 1.0  # of trying
PRODUCT, CONVOLUTION = "products of 1024 x 1024", "5x5 convolutions of 32 to 64 channels"


def peaks(device: str, workers: int) -> dict[str, tuple[float, float]]:
    """What is computed -> GFLOP/s of one core and of all ``workers`` at once, one thread each (or
    the accelerator).
    """
    if device != "cpu":
        return {name: (best(name, device),) * 2 for name in (PRODUCT, CONVOLUTION)}
    return {
        name: (sum(at_once(name, 1)), sum(at_once(name, workers)))
        for name in (PRODUCT, CONVOLUTION)
    }


def at_once(name: str, workers: int) -> list[float]:
    """GFLOP/s of each of so many processes that compute at the same time."""
    context = get_context("fork")
    lines = [context.Pipe(duplex=False) for _ in range(workers)]
    processes = [context.Process(target=tell, args=(there, name)) for _, there in lines]
    for process in processes:
        process.start()
    found = [here.recv() for here, _ in lines]
    for process in processes:
        process.join()
    return found


def tell(there: Connection, name: str) -> None:
    torch.set_num_threads(1)
    there.send(best(name, "cpu"))


@torch.inference_mode()
def best(name: str, device: str) -> float:
    """GFLOP/s of the fastest of many repetitions."""
    run, flops = work(name, device)
    fastest, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - begin)
    return flops / fastest / 1e9


def work(name: str, device: str) -> tuple[Callable[[], object], float]:
    """Something to do in float32, until it is done, and its FLOPs."""
    if name == PRODUCT:
        a = torch.rand(1024, 1024, device=device)
        return lambda: float((a @ a)[0, 0]), 2 * 1024**3
    x, kernels = torch.rand(128, 32, 14, 14, device=device), torch.rand(64, 32, 5, 5, device=device)
    flops = 2 * 128 * 14 * 14 * kernels.numel()
    if device == "cpu":
        x, kernels = x.to_mkldnn(), kernels.to_mkldnn()
        return lambda: torch.conv2d(x, kernels, None, 1, 2), flops
    return lambda: float(torch.conv2d(x, kernels, None, 1, 2)[0, 0, 0, 0]), flops

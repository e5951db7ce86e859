"""What decides the bytes of a run, as one hash: two runs with equal fingerprints have equal results."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from edgesim.runs.artifacts import versions
from edgesim.runs.code_digest import code_digest
from edgesim.runs.user_code import user_files
from fl.data import datasets

if TYPE_CHECKING:
    from edgesim.runs.setup import Setup


def of_results(setup: Setup) -> str:
    """What decides the bytes of the results: scenario, seed, data, user code, versions, where torch computes."""
    where = [setup.scenario.learning.device, setup.arithmetic()]
    parts = [setup.scenario.digest(), str(setup.seed), *where, *map(str, versions().items())]
    total = hashlib.sha256("\n".join(parts).encode())
    for path in [
        *user_files(setup.scenario),
        *datasets.locate(setup.scenario.learning.dataset, setup.data),
    ]:
        total.update(file_digest(path))
    for labels in (setup.task.data.y_train, setup.task.data.y_test):
        total.update(labels.tobytes())
    return total.hexdigest()


def of_learning(setup: Setup) -> str | None:
    """What decides training and evaluation beside states and orders: data and who holds them, model, method,
    seed, arithmetic, code. None where nothing is trained, or by code of the user's own, which could read anything.
    """
    if setup.counts_only or ".py:" in setup.scenario.learning.method.name:
        return None
    import torch

    place = [
        setup.scenario.learning.device,
        setup.arithmetic(),
        torch.backends.cpu.get_cpu_capability(),
    ]
    parts = [
        setup.scenario.digest(("learning", "accounting")),
        str(setup.seed),
        *place,
        *map(str, versions().items()),
    ]
    total = hashlib.sha256("\n".join(parts).encode())
    total.update(code_digest(type(setup.method)).encode())
    data = setup.task.data
    for path in datasets.locate(setup.scenario.learning.dataset, setup.data):
        total.update(file_digest(path))
    for array in (
        data.y_train,
        data.y_test,
        setup.task.samples,
        *data.train_index,
        *data.test_index,
    ):
        total.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file; asked again, it is read again only if it has changed."""
    found = path.stat()
    return _file_digest(path, found.st_size, found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=1024)
def _file_digest(path: Path, *stamp: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()

"""Partitions that are given, not drawn: by the clients of the data, or by a file."""

from __future__ import annotations

import csv
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from fl.contracts import Array
from fl.data.array_files import DAMAGED
from fl.errors import DataError
from fl.regular_files import open_regular

MAX_PARTITION_BYTES = 1 << 30
Parts = list[Array]


def by_client(
    clients: tuple[Array, Array | None] | None, devices: int
) -> tuple[Parts, Parts | None]:
    """Training and test indices of the devices: device k is the k-th client in order of the ids.

    Where there are more clients than devices, those with most samples take part.

    Args:
        clients: number of the client of each training and test sample, int [N]; the test samples
            may have none.
        devices: K.

    Returns:
        Indices of training samples, and of test samples or None.
    """
    if clients is None:
        raise DataError(
            'partition kind is "natural", but this data set does not say whose each sample is; '
            "give clients_train, or use iid, labels, dirichlet or file"
        )
    train, test = clients
    chosen = np.sort(with_most_samples(train, devices, "clients"))
    parts = [np.flatnonzero(train == client) for client in chosen]
    return parts, None if test is None else [np.flatnonzero(test == client) for client in chosen]


def with_most_samples(owner: Array, devices: int, what: str) -> Array:
    """The owners of most samples, the largest first, one per device.

    Args:
        owner: of each sample [N].
        devices: K.
        what: the owners are, in the plural.
    """
    sizes = np.bincount(owner)
    largest = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    if devices > len(largest):
        have = f"1 {what[:-1]} has" if len(largest) == 1 else f"{len(largest)} {what} have"
        raise DataError(f"{have} training samples: too few for {devices} devices")
    return largest[:devices]


def surplus_clients(train: Array, devices: int) -> str | None:
    """A sentence about the clients for which there is no device; None where there is one for all.

    Args:
        train: number of the client of each training sample, int [N].
        devices: K.
    """
    sizes = np.sort(np.bincount(train))[::-1]
    clients, lost = np.count_nonzero(sizes), int(sizes[devices:].sum())
    if clients <= devices:
        return None
    return (
        f"{devices} of {clients} clients take part, those with most samples: "
        f"{clients - devices} with {lost} of {len(train)} training samples are left out; "
        f"devices with a count of {clients} in all would have them"
    )


def by_file(path: Path, samples: tuple[int, int], devices: int) -> tuple[Parts, Parts | None]:
    """Training and test indices of the devices as a file assigns them.

    Args:
        path: a CSV file with the columns sample, device and, if wanted, part (train or test); or an
            .npz file with the arrays train and, if wanted, test: the device of each sample, -1:
            nobody's.
        samples: number of training and of test samples.
        devices: K.

    Returns:
        Indices of training samples, and of test samples or None.

    Raises:
        DataError: the file is not as above, or leaves a device without training samples.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    read = owners_of_npz if path.suffix == ".npz" else owners_of_csv
    train, test = read(path, samples, devices)
    parts = [np.flatnonzero(train == k) for k in range(devices)]
    empty = [k for k, mine in enumerate(parts) if not len(mine)]
    if empty:
        raise DataError(f"{path} gives device {empty[0]} no training sample")
    return parts, None if test is None else [np.flatnonzero(test == k) for k in range(devices)]


def owners_of_npz(path: Path, samples: tuple[int, int], devices: int) -> tuple[Array, Array | None]:
    """The device of each training and test sample, -1: nobody's."""
    try:
        with open_regular(path, MAX_PARTITION_BYTES) as content:
            if content.peek(2)[:2] != b"PK":
                raise ValueError("it is no archive of arrays")
            file = np.load(content, allow_pickle=False)
            arrays = {name: file[name] for name in file.files}
    except DAMAGED as error:
        raise DataError(f"{path} cannot be read: {str(error).rstrip('.')}") from error
    if "train" not in arrays or set(arrays) - {"train", "test"}:
        raise DataError(
            f"{path} has {', '.join(arrays) or 'nothing'}; it needs train, and if wanted test"
        )
    for name, count in zip(("train", "test"), samples, strict=True):
        owners = arrays.get(name)
        if owners is None:
            continue
        if owners.shape != (count,) or owners.dtype.kind not in "iu":
            found = f"{owners.dtype} {list(owners.shape)}"
            raise DataError(
                f"{path}: {name} is {found}; the device of each sample is int [{count}]"
            )
        if owners.min() < -1 or owners.max() >= devices:
            worst = owners.min() if owners.min() < -1 else owners.max()
            raise DataError(f"{path}: {name} names device {worst}; there are 0 to {devices - 1}")
    return arrays["train"], arrays.get("test")


def owners_of_csv(path: Path, samples: tuple[int, int], devices: int) -> tuple[Array, Array | None]:
    """The device of each training and test sample, -1: nobody's."""
    owners = {"train": np.full(samples[0], -1), "test": np.full(samples[1], -1)}
    try:
        with open_regular(path, MAX_PARTITION_BYTES) as content:
            table = csv.reader(TextIOWrapper(content, newline="", encoding="utf-8-sig"))
            header = [name.strip() for name in next(table, [])]
            if header not in (["sample", "device"], ["sample", "device", "part"]):
                shown = ",".join(header)[:60]
                raise DataError(f"{path}:1: is {shown}; write sample,device or sample,device,part")
            for row in table:
                if row:
                    assign(
                        owners, [cell.strip() for cell in row], devices, f"{path}:{table.line_num}"
                    )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return owners["train"], owners["test"] if (owners["test"] >= 0).any() else None


def assign(owners: dict[str, Array], row: list[str], devices: int, place: str) -> None:
    """Take one line of the file."""
    part = row[2] if len(row) == 3 else "train"
    if len(row) not in (2, 3) or part not in owners:
        raise DataError(f"{place}: is {','.join(row)[:60]}; write sample,device[,train or test]")
    numbers = []
    for name, text, count in (
        ("sample", row[0], len(owners[part])),
        ("device", row[1], devices),
    ):
        if not text.isdecimal() or len(text) > 18 or int(text) >= count:
            raise DataError(f"{place}: {name} is {text[:20]}; allowed are 0 to {count - 1}")
        numbers.append(int(text))
    sample, device = numbers
    if owners[part][sample] >= 0:
        raise DataError(f"{place}: sample {sample} of {part} is named twice")
    owners[part][sample] = device

"""The grants of a round as columns, so that a million devices need not be a million objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fl.contracts import Array, Grant


@dataclass(frozen=True, eq=False)
class Grants(Sequence[Grant]):
    """Columns [S] with the names of a `Grant`; an entry is one."""

    device: Array
    share: Array
    rho: Array
    cpu_hz: Array
    power_w: Array

    @property
    def columns(self) -> tuple[Array, ...]:
        return self.device, self.share, self.rho, self.cpu_hz, self.power_w

    def __len__(self) -> int:
        return len(self.device)

    def __getitem__(self, i: Any) -> Any:
        return Grant(*(column[i].item() for column in self.columns))

    def __iter__(self) -> Iterator[Grant]:
        return (
            Grant(*row) for row in zip(*(column.tolist() for column in self.columns), strict=True)
        )

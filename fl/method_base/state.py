"""What a method carries from round to round, and its form on disk: arrays and a JSON record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fl.contracts import Tensor

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class State:
    """After ``g`` rounds: the server's model, and what stays at the devices.

    Args:
        g: Rounds done.
        w: The server's model [P]; its personal coordinates are the initial ones, used by devices
            that are not yet in ``local``.
        local: Device -> what stays there, as `Method.local_part` gives it.
        memo: Tensors that a method remembers.
        notes: What else it remembers, fit for JSON: a bandit's record.
    """

    g: int
    w: Tensor
    local: dict[int, Tensor] = field(default_factory=dict)
    memo: dict[str, Tensor] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and the record that `from_arrays` needs beside them."""
        arrays = {"w": self.w} | {f"memo/{name}": value for name, value in self.memo.items()}
        arrays |= {f"local/{k}": self.local[k] for k in sorted(self.local)}
        record = {"g": self.g, "notes": self.notes}
        return {name: value.detach().cpu().numpy() for name, value in arrays.items()}, record

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, Array], record: dict[str, Any], device: str = "cpu"
    ) -> State:
        """The state that `to_arrays` wrote."""
        import torch

        tensors = {
            name: torch.from_numpy(np.array(value)).to(device) for name, value in arrays.items()
        }
        parts = {
            room: {n.partition("/")[2]: t for n, t in tensors.items() if n.startswith(room)}
            for room in ("local/", "memo/")
        }
        local = {int(k): parts["local/"][k] for k in sorted(parts["local/"], key=int)}
        return cls(
            int(record["g"]), tensors["w"], local, parts["memo/"], dict(record.get("notes", {}))
        )

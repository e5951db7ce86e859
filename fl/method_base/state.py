"""What a method carries from round to round, and its form on disk: arrays and a JSON record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fl.contracts import Array, Tensor


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
        record, tensors = {"g": self.g, "notes": self.notes}, self._tensors()
        return {name: value.detach().cpu().numpy() for name, value in tensors.items()}, record

    def bases_to_arrays(
        self, bases: Sequence[tuple[State, Sequence[int]]]
    ) -> tuple[dict[str, Array], list[dict[str, Any]]]:
        """Older states from which jobs at work have started, beside this one; every tensor once.

        Args:
            bases: States, and the devices at work that started from each: of the others what stays
                at them is not kept.

        Returns:
            Arrays by name, and the records that `bases_from_arrays` needs beside them.
        """
        names = {id(tensor): name for name, tensor in self._tensors().items()}
        arrays: dict[str, Array] = {}

        def name_of(tensor: Tensor) -> str:
            if id(tensor) not in names:
                names[id(tensor)] = name = f"base/{len(arrays)}"
                arrays[name] = tensor.detach().cpu().numpy()
            return names[id(tensor)]

        records = [
            {
                "g": base.g,
                "notes": base.notes,
                "w": name_of(base.w),
                "memo": {name: name_of(tensor) for name, tensor in base.memo.items()},
                "local": {str(k): name_of(base.local[k]) for k in devices if k in base.local},
            }
            for base, devices in bases
        ]
        return arrays, records

    def bases_from_arrays(
        self, arrays: dict[str, Array], records: Sequence[dict[str, Any]]
    ) -> list[State]:
        """The older states that `bases_to_arrays` of this one wrote.

        Raises:
            AttributeError, LookupError, TypeError, ValueError: they are of another form.
        """
        import torch

        tensors = self._tensors() | {
            name: torch.from_numpy(np.array(value)).to(self.w.device)
            for name, value in arrays.items()
            if name.startswith("base/")
        }
        for record in records:
            w = tensors[record["w"]]
            if (w.shape, w.dtype) != (self.w.shape, self.w.dtype):
                raise ValueError(f"{record['w']} is {list(w.shape)} of {w.dtype}, unlike the model")
        return [
            State(
                int(record["g"]),
                tensors[record["w"]],
                {int(k): tensors[name] for k, name in record["local"].items()},
                {key: tensors[name] for key, name in record["memo"].items()},
                dict(record["notes"]),
            )
            for record in records
        ]

    def _tensors(self) -> dict[str, Tensor]:
        """By the names of `to_arrays`."""
        tensors = {"w": self.w} | {f"memo/{name}": value for name, value in self.memo.items()}
        return tensors | {f"local/{k}": self.local[k] for k in sorted(self.local)}

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

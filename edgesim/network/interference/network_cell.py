"""A network: sectors that share a band, behind the interface of one cell."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.measured import MeasuredInterference
from edgesim.network.interference.network_planning.expected_interference import (
    ExpectedInterference,
)
from edgesim.network.interference.network_planning.network_planner import (
    NetworkPlan,
    NetworkPlanner,
)
from fl.contracts import Array, RoundPlan, View


class Network(Cell):
    """All sectors and everything physical in them; to clocks it is a `Cell`.

    Args:
        couplings: gains at all sectors, and who serves whom; the same object as the links'.
        interference: what plans count with, see `ExpectedInterference`.
        expects_load: the links hear what plans expect by their loads.
        outside: interference that plans count with, of devices of other servers [S], W/Hz.
        measured: what the links met, where plans count with it; the same object as the links'.
        options: of `Cell`.
    """

    planner: NetworkPlanner

    def __init__(
        self,
        couplings: Couplings,
        interference: str,
        expects_load: bool = False,
        outside: Array | float = 0.0,
        measured: MeasuredInterference | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.couplings = couplings
        self.measured = measured
        expected = ExpectedInterference(
            couplings,
            self.channel,
            self.fleet,
            self.budget_s,
            lambda: self.env.now,
            interference,
            outside,
            measured,
        )
        self.planner = NetworkPlanner(self.sector_planner, couplings, expected, expects_load)

    def view(self, g: int, everyone: bool = False) -> View:
        self.uplink.follow()
        return super().view(g, everyone)

    def begin_round(self, plan: RoundPlan, others_go_on: bool = False) -> None:
        self.uplink.expect(plan.load_w if isinstance(plan, NetworkPlan) else None)
        super().begin_round(plan, others_go_on)

    def planned_channel(self, plan: RoundPlan) -> Channel:
        return self.planner.disturbed(plan.density if isinstance(plan, NetworkPlan) else None)

    def sharers(self) -> Array:
        return self.planner.sharers()

    def arrays(self) -> dict[str, Array]:
        met = self.measured.arrays(self.env.now) if self.measured else {}
        return super().arrays() | met

    def restore_arrays(self, arrays: Mapping[str, Array], at_work: Container[int] = ()) -> None:
        super().restore_arrays(arrays, at_work)
        if self.measured is not None:
            self.measured.restore(arrays)

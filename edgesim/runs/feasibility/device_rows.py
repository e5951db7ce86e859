"""What one device can reach in round 0, and what is planned for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from edgesim.network.cell import Cell
from edgesim.network.grants import granted_amounts, grants_of
from fl.contracts import Array, Demand, RoundPlan, View
from fl.method_base.method import Method

MS = 1e3


class DeviceRows(Sequence[dict]):
    """Rows that are computed when they are read: a million devices are checked, and thirty shown.

    Args:
        cell: of the run, at its start.
        method: forecasts the stages of a device.
        demand: of all devices in round 0.
        view: what the server knows in round 0.
        asked: devices that round 0 asks, int [S].
        plan: of these.
        left_out: devices that cannot take part.
    """

    def __init__(
        self,
        cell: Cell,
        method: Method,
        demand: Demand,
        view: View,
        asked: Array,
        plan: RoundPlan,
        left_out: Collection[int],
    ) -> None:
        self.cell, self.method, self.demand, self.view = cell, method, demand, view
        self.plan, self.grants = plan, grants_of(plan)
        self.asked, self.left_out = asked, left_out

    @cached_property
    def fair(self) -> Array:
        """An equal share of the band among as many devices as a round asks [K]."""
        sharers = self.cell.sharers() * (len(self.asked) / len(self.demand.devices))
        return 1.0 / np.maximum(sharers, 1.0)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Device -> place among the grants; made when the first row is asked for."""
        return {k: place for place, k in enumerate(self.grants.device.tolist())}

    @cached_property
    def download_s(self) -> Array:
        """Time until each device has the model [K], s: beside those who can take part, if it is one
        of them, otherwise beside everybody.
        """
        devices, gains = np.asarray(self.demand.devices, dtype=int), self.cell.planner.gains
        bits = np.broadcast_to(np.asarray(self.demand.bits_down, dtype=float), devices.shape)
        seconds = np.array(self.cell.downlink.seconds(bits, devices, gains))
        there = np.array([k not in self.left_out for k in devices.tolist()], dtype=bool)
        if there.any() and not there.all():
            seconds[there] = self.cell.downlink.seconds(bits[there], devices[there], gains)
        return seconds

    @cached_property
    def planned_link_s(self) -> Array:
        """What the plan counts with for download and upload together [S], s."""
        _, bits_up, bits_down = granted_amounts(self.cell.fleet, self.demand, self.grants)
        down_s, up_s = self.cell.planned_link_s(self.plan, bits_down, bits_up)
        return down_s + up_s

    @cached_property
    def gains(self) -> tuple[Array, Array]:
        """Gains that the server takes, over the whole band and over fair shares [K], linear."""
        whole = np.ones(len(self.fair))
        return gains_at(self.cell, self.view, whole), gains_at(self.cell, self.view, self.fair)

    def __len__(self) -> int:
        return len(self.demand.devices)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[place] for place in range(*i.indices(len(self)))]
        place = range(len(self))[i]
        k = int(self.demand.devices[place])
        granted = self.place_of.get(k)
        row = self._row(place, granted)
        if granted is None and k not in self.left_out:
            row["share"] = math.nan  # another round asks it
        return {**row, "feasible": k not in self.left_out}

    def _row(self, i: int, granted: int | None) -> dict[str, Any]:
        """The row of one device.

        Args:
            i: position of the device in the demand.
            granted: position of its grant in the plan of round 0, if it has one.
        """
        cell, demand, view = self.cell, self.demand, self.view
        k = int(demand.devices[i])
        device, rate_bps = cell.fleet.device(k), view.rate_bps[k]
        gain, fair_gain = (float(each[k]) for each in self.gains)
        fair = float(self.fair[k])

        @cache  # most methods ask for one rho only, and to price a submodel takes a while
        def seconds(rho: float, cpu_hz: float = view.cpu_hz[k]) -> dict[str, float]:
            return {
                s.name: device.seconds(s.work, cpu_hz) for s in self.method.forecast(view, k, rho)
            }

        def parts_s(rho: float, bps: float) -> dict[str, float]:
            bits = demand.bits_fixed[i] + (1.0 - rho) * demand.bits_prunable[i]
            upload_s = bits / bps if bps else math.inf if bits else 0.0
            return {"download": float(self.download_s[i]), **seconds(rho), "uplink": upload_s}

        # With noise as a density a share of the band carries more than that share of its rate.
        fair_w = cell.channel.sent_w(fair, cell.fleet.tx_power_w[k], view.now_s, k)
        fair_bps = float(cell.channel.rate_bps(fair, fair_w, fair_gain))
        rho_min, rho_max = demand.rho_min[i], demand.rho_max[i]
        unpruned_s, least_s = parts_s(rho_min, fair_bps), parts_s(rho_max, rate_bps)
        # A device whose computation alone takes too long is bound by what no pruning shortens.
        others_s = sum(s for name, s in least_s.items() if name != "uplink")  # that may be inf
        too_slow = others_s >= view.budget_s
        bound_by_s = least_s if too_slow else unpruned_s
        grant, planned_s = None, math.nan
        if granted is not None:
            grant = self.grants[granted]
            compute_s = sum(seconds(grant.rho, grant.cpu_hz).values())
            planned_s = compute_s + float(self.planned_link_s[granted])
        return {
            "device": k,
            "gain_db": 10.0 * math.log10(gain) if gain > 0.0 else -math.inf,
            "rate_mbps": float(rate_bps / 1e6),
            "stages": {name: s * MS for name, s in seconds(rho_min).items()},
            "upload_ms": unpruned_s["uplink"] * MS,
            "least_ms": sum(least_s.values()) * MS,
            "binds": max(bound_by_s, key=lambda name: bound_by_s[name]),
            "share": grant.share if grant else 0.0,
            "rho": grant.rho if grant else math.nan,
            "planned_ms": planned_s * MS,
        }


def gains_at(cell: Cell, view: View, share: Array) -> Array:
    """What the server takes for the gains of the devices on these shares of the band [K]."""
    power_w = cell.channel.sent_w(share, cell.fleet.tx_power_w, view.now_s)
    return cell.planner.gains.at_start(view.now_s, cell.channel.snr_per_gain(share, power_w))

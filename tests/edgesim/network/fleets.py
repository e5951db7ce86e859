"""Fleets of plain numbers."""

from dataclasses import fields
from typing import Any

import numpy as np

from edgesim.network.device import Fleet


def make_fleet(
    tx_power_w: Any,
    cpu_hz: Any,
    cycles_per_weight: Any = np.nan,
    flops_per_cycle: Any = np.nan,
    capacitance: Any = 1e-28,
    min_cpu_hz: Any = 0.0,
    distance_m: Any = np.nan,
    x_m: Any = np.nan,
    y_m: Any = np.nan,
    height_m: Any = np.nan,
    idle_power_w: Any = 0.0,
    receive_power_w: Any = 0.0,
    static_power_w: Any = 0.0,
    availability: Any = 1.0,
    failure_rate_hz: Any = 0.0,
    capability: Any = 1.0,
    model_budget: Any = 1.0,
) -> Fleet:
    """A fleet from plain numbers and arrays [K], broadcast to one length; see `Fleet`."""
    given = locals()
    columns = [np.atleast_1d(np.asarray(given[field.name], float)) for field in fields(Fleet)]
    return Fleet(*(column.copy() for column in np.broadcast_arrays(*columns)))

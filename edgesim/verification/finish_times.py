"""The finish times of uploads against Liu (28), where the channel stands still."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgesim.errors import counted
from edgesim.presence.absences import LOST
from edgesim.runs.setup.setup import Setup
from edgesim.verification.check_result import (
    FAILED,
    PASSED,
    SKIPPED,
    TOLERANCE,
    CheckResult,
    first_difference,
)
from edgesim.verification.recorded_rounds import RecordedRound
from fl.contracts import Array, RoundPlan

FINISH = "finish, Liu (28)"


def check_finish(
    setup: Setup, rounds: list[RecordedRound], plans: dict[int, RoundPlan]
) -> CheckResult:
    """Cycles over clock plus bits over rate, Liu (24), (25): the finish time of every upload.

    It holds where the channel stands still, the band is divided for a whole round, the downlink
    takes no time, and uploads have no slots and no repetitions of their own; cycles and bits are
    those that were charged.
    """
    network, away = setup.scenario.network, setup.absences
    moving = {
        "the channel changes": not setup.channel.static,
        "uploads of other sectors disturb each other": network.layout.kind != "single",
        "the band is divided anew within a round": network.uplink.share != "fixed",
        "the downlink takes time": network.downlink.mode != "ideal",
        "uploads wait for their slots": setup.channel.services[0] is not None,
        "lost blocks are drawn": network.adaptation is not None
        and network.adaptation.errors == "drawn",
        "processors are throttled, or run other programs": any(
            each.thermal or each.load for each in setup.hardware.values()
        ),
        "jobs go on after an absence": away is not None
        and {*away.on_leave, *away.on_failure} != {LOST},
        "the plans could not be made again": any(
            len(each.rows) and each.g not in plans for each in rounds
        ),
    }
    if reasons := [reason for reason, holds in moving.items() if holds]:
        return CheckResult(FINISH, SKIPPED, reasons[0])
    count, gain = 0, setup.channel.gains(0.0)
    for each in rounds:
        rows = each.rows[each.rows["status"].isin(("arrived", "late"))]
        rows = rows[np.isfinite(rows["finish_s"])]
        if not len(rows):
            continue
        grants = {grant.device: grant for grant in plans[each.g].grants}
        used = [grants[k] for k in rows["device"].tolist()]
        clock = np.array([grant.cpu_hz for grant in used])
        power_w = np.array([grant.power_w for grant in used])
        sent = rows["device"].to_numpy(), rows["share"].to_numpy(), power_w, gain[rows["device"]]
        rate = setup.channel.flow_bps(0.0, *sent)
        expected_s = rows["cycles"].to_numpy() / clock + _seconds(rows["bits_up"].to_numpy(), rate)
        at = first_difference(rows["finish_s"], expected_s)
        if at is not None:
            k, found = rows["device"].iloc[at], rows["finish_s"].iloc[at]
            problem = f"{found} s, and (28) gives {expected_s[at]} s"
            return CheckResult(FINISH, FAILED, f"round {each.g}, device {k}: {problem}")
        count += len(rows)
    return CheckResult(FINISH, PASSED, f"{counted(count, 'upload')} within {TOLERANCE:g}")


def _seconds(bits: Array, rate_bps: Any) -> Array:
    """0 where there is nothing to send."""
    return np.divide(bits, rate_bps, out=np.zeros(len(bits)), where=bits > 0.0)

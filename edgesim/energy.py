"""The ledger: the joules of a span. Nothing else computes joules.

    computing     kappa f^2 per cycle        (dynamic power kappa f^3 of a CMOS core at clock f)
    sending       transmit power x air time  (the radio is on for the whole upload, also through a fade)
    receiving     receive power x air time
    idle          idle power x time

Idle power is what a device draws while it waits for the others; it is not added to the power of computing or sending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgesim.contracts import Grant
from edgesim.device import Fleet
from edgesim.span import Span

Joules = Callable[[Span], float]


def compute_j(capacitance: float, cpu_hz: float, cycles: float) -> float:
    """Energy of ``cycles`` at clock f: kappa f^2 cycles, J (Burd and Brodersen 1996; as in most MEC papers)."""
    return capacitance * cpu_hz**2 * cycles


def power_j(power_w: float, seconds: float) -> float:
    """Energy of a constant power, J."""
    return power_w * seconds


@dataclass(frozen=True)
class Ledger:
    """Prices spans: each method gives the function that turns a closed span of one device into joules."""

    fleet: Fleet

    def computing(self, grant: Grant) -> Joules:
        capacitance = float(self.fleet.capacitance[grant.device])
        return lambda span: compute_j(capacitance, grant.cpu_hz, span.cycles)

    def sending(self, grant: Grant) -> Joules:
        return lambda span: power_j(grant.power_w, span.seconds)

    def receiving(self, device: int) -> Joules:
        power_w = float(self.fleet.receive_power_w[device])
        return lambda span: power_j(power_w, span.seconds)

    def idle(self, device: int) -> Joules:
        power_w = float(self.fleet.idle_power_w[device])
        return lambda span: power_j(power_w, span.seconds)

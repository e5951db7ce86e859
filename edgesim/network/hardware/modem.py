"""The modem: what it draws while it sends, listens on after the last bit, and sleeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Modem:
    """Powers of one modem; the defaults are those of a device without the section ``radio``.

    Args:
        circuit_power_w: P_c, of the circuits while it sends.
        efficiency: eta, transmit power over power into the amplifier.
        tail_s: how long it listens on after its last bit.
        tail_power_w: power while it does.
        sleep_power_w: power after that.
    """

    circuit_power_w: float = 0.0
    efficiency: float = 1.0
    tail_s: float = 0.0
    tail_power_w: float = 0.0
    sleep_power_w: float = 0.0

    def sending_w(self, tx_power_w: float) -> float:
        """Power while sending, P_c + p / eta, W."""
        return self.circuit_power_w + tx_power_w / self.efficiency


NO_MODEM = Modem()  # sending draws the transmit power, and nothing else draws anything

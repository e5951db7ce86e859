"""What one device is made of, beside its transmitter: what its activities draw, and a job takes."""

from __future__ import annotations

from dataclasses import dataclass

from edgesim.network.hardware.background_load import BackgroundLoad
from edgesim.network.hardware.battery import Battery
from edgesim.network.hardware.modem import NO_MODEM, Modem
from edgesim.network.hardware.thermal import Thermal
from edgesim.network.span_energy import compute_j, mean_power_w, power_j
from edgesim.network.tdd_service import AirTimes


@dataclass(frozen=True)
class DeviceHardware:
    """What one device is made of; None: it has no such limit.

    Args:
        capacitance: kappa, J s^2.
        static_power_w: of the processor while it computes, beside kappa f^3.
        idle_power_w: while it waits.
        receive_power_w: while it receives.
        modem: see `Modem`.
        thermal: see `Thermal`.
        load: see `BackgroundLoad`.
        battery: see `Battery`.
    """

    capacitance: float = 0.0
    static_power_w: float = 0.0
    idle_power_w: float = 0.0
    receive_power_w: float = 0.0
    modem: Modem = NO_MODEM
    thermal: Thermal | None = None
    load: BackgroundLoad | None = None
    battery: Battery | None = None

    def sending_w(self, tx_power_w: float, air_share: float) -> float:
        """Mean power while it sends, on the air for this share of the time, W."""
        return float(mean_power_w(air_share, self.modem.sending_w(tx_power_w), self.listening_w))

    def receiving_w(self, air_share: float) -> float:
        """Mean power while it receives, on the air for this share of the time, W."""
        return float(mean_power_w(air_share, self.receive_power_w, self.listening_w))

    @property
    def listening_w(self) -> float:
        """Power while it waits and its modem listens on, W: in slots of the other direction."""
        return self.idle_power_w + self.modem.tail_power_w

    @property
    def planned_share(self) -> float:
        """Share of its clock that it is planned to give: its mean beside other programs."""
        return 1.0 if self.load is None else self.load.mean_share

    def job_j(
        self,
        air_times: AirTimes,
        power_w: float,
        cpu_hz: float,
        cycles: float,
        up_s: float,
        down_s: float = 0.0,
    ) -> float:
        """What a job is planned to use, J.

        Args:
            air_times: of uplink and downlink.
            power_w: p, transmit power, W.
            cpu_hz: planned clock, Hz.
            cycles: of the computation.
            up_s: time of sending, s.
            down_s: time of receiving, s.
        """
        up, down = air_times
        compute_s = cycles / cpu_hz
        busy_w = self.static_power_w + self.modem.sleep_power_w
        tail_w = self.modem.tail_power_w - self.modem.sleep_power_w  # after the download
        joules = (
            power_j(self.receiving_w(down.share), down_s)
            + compute_j(self.capacitance, cpu_hz / self.planned_share, cycles)
            + power_j(busy_w, compute_s)
            + power_j(tail_w, min(self.modem.tail_s, compute_s))
            + power_j(self.sending_w(power_w, up.share), up_s)
        )
        return float(joules)
